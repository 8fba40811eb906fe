package headers

import "time"

// plainName reads the names that most responses have, "x-ratelimit-limit" and
// its like, to the same meaning that the grammar gives them, only sooner.
func plainName(low []byte) (m meaning, ok bool) {
	end := 0
	switch { // the families are hashes, as TestPlainNames makes sure
	case len(low) > 12 && string(low[:12]) == "x-ratelimit-":
		end, m.family = 11, 0x1986de7f
	case len(low) > 10 && string(low[:10]) == "ratelimit-":
		end, m.family = 9, 0x665b9702
	case len(low) > 13 && string(low[:13]) == "x-rate-limit-":
		end, m.family = 12, 0xa31cb87e
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
		return meaning{}, false
	}
	m.plain, m.unit, m.scale, m.vendor = true, "requests", time.Second, fnvBasis
	return m, true
}
