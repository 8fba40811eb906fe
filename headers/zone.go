package headers

import "strings"

// zone reads what follows a time of day: nothing, Z, an offset, a name, an
// offset with a name (Go's String, which may add its monotonic reading).
func (c *civil) zone(s string) bool {
	for {
		var f string
		f, s = cutField(s)
		if f == "" || f[0] == '(' || strings.HasPrefix(f, "m=") {
			return true
		}
		if !c.zoneWord(f) {
			return false
		}
	}
}

// zoneWord reads Z, UTC, GMT+0100, +01:00, -07, EST.
func (c *civil) zoneWord(s string) bool {
	i := strings.IndexAny(s, "+-")
	name := s
	if i >= 0 {
		name = s[:i]
	}
	if name != "" {
		hours, ok := zoneHours(name)
		if !ok {
			return false
		}
		if !c.hasZone {
			c.offset = hours * 3600
		}
		c.hasZone = true
	}
	if i < 0 {
		return true
	}
	offset, ok := parseOffset(s[i+1:])
	if s[i] == '-' {
		offset = -offset
	}
	c.offset, c.hasZone = offset, true
	return ok
}

// parseOffset reads 01:00, 0100, 01 and 1 as seconds.
func parseOffset(s string) (int, bool) {
	var h, m int
	ok1, ok2 := false, true
	switch {
	case len(s) == 5 && s[2] == ':':
		h, ok1 = atoi(s[:2])
		m, ok2 = atoi(s[3:])
	case len(s) == 4:
		h, ok1 = atoi(s[:2])
		m, ok2 = atoi(s[2:])
	case len(s) == 2 || len(s) == 1:
		h, ok1 = atoi(s)
	}
	return h*3600 + m*60, ok1 && ok2 && h <= 18 && m <= 59
}

// zoneHours knows the names of RFC 822 section 5.1 and the usual ones for UTC.
func zoneHours(name string) (int, bool) {
	switch len(name) {
	case 1:
		return 0, name == "Z" || name == "z"
	case 2:
		return 0, strings.EqualFold(name, "UT")
	case 3:
	default:
		return 0, false
	}
	const names = "UTC0GMT0EST5EDT4CST6CDT5MST7MDT6PST8PDT7"
	for i := 0; i < len(names); i += 4 {
		if strings.EqualFold(name, names[i:i+3]) {
			return -int(names[i+3] - '0'), true
		}
	}
	return 0, false
}
