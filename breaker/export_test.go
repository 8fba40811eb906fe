package breaker

// KeepSettings is SetHost before it has told the circuits: what a request finds
// that comes in between.
func KeepSettings(c *Circuits, pattern string, cfg Config) error {
	s, err := resolve(cfg)
	if err != nil {
		return err
	}
	return c.keep(pattern, s)
}

// IsWatched reports whether requests of a host are awaited, so that each call costs
// more than those of a host that is well. Nothing else shows it.
func IsWatched(c *Circuits, host string) bool {
	e := c.home.Load().Find(host)
	defer e.Release()
	return lifeOf(&e.Value).doubtful()
}
