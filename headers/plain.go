package headers

import "time"

// plainName reads the names that most responses have, "x-ratelimit-limit" and
// its like, to the same meaning that the grammar gives them, only sooner.
func plainName(low []byte) (m meaning, ok bool) {
	end := 0
	switch {
	case len(low) > 12 && string(low[:12]) == "x-ratelimit-":
		end = 11
	case len(low) > 10 && string(low[:10]) == "ratelimit-":
		end = 9
	case len(low) > 13 && string(low[:13]) == "x-rate-limit-":
		end = 12
	default:
		return m, false
	}
	switch string(low[end+1:]) {
	case "limit":
		m.role = roleQuota
	case "remaining":
		m.role = roleRemaining
	case "reset":
		m.role = roleReset
	case "used":
		m.role = roleUsed
	case "resource":
		m.role = roleLabel
	default:
		return m, false
	}
	m.plain, m.unit, m.scale, m.vendor = true, "requests", time.Second, fnvBasis
	m.family = hash(fnvBasis, low[:end])
	return m, true
}
