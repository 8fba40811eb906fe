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
