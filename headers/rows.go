package headers

import "time"

// row is a special shape: what a header's name alone does not say, or says
// wrongly. A vendor is a row here, never a branch elsewhere.
type row struct {
	name       string // of the header, lower case; with a * at the end, all that begin so
	role       role   // roleNone: what the grammar finds
	unit       string // "": what the grammar finds; "-": nothing is known to be counted
	limit      string // what the limit is called by; "": what the grammar finds; "-": nothing
	scale      time.Duration
	keepWindow bool             // the window belongs to the name
	windows    [2]time.Duration // of the items of a bare list, by their place
}

var rows = [...]row{
	// One number of known meaning under a name that the grammar cannot know.
	{name: "x-mbx-used-weight*", role: roleUsed, unit: "weight"},
	{name: "x-mbx-order-count*", role: roleUsed, unit: "orders"},
	{name: "x-sapi-used-*", role: roleUsed, unit: "weight"},
	{name: "x-ms-throttle-limit-percentage", role: rolePercent, unit: "resource-units"},
	{name: "x-ms-user-quota-remaining", role: roleRemaining, limit: "user-quota"},
	{name: "x-ms-user-quota-resets-after", role: roleReset, limit: "user-quota"},
	{name: "x-ms-ratelimit-time-remaining*", role: roleRemaining, unit: "seconds"},
	{name: "x-amzn-ratelimit-limit", role: roleRate},
	{name: "x-bapi-limit", role: roleQuota, limit: "-"},
	{name: "x-bapi-limit-status", role: roleRemaining, limit: "-"},
	{name: "x-bapi-limit-reset-timestamp", role: roleReset, limit: "-"},
	{name: "twilio-concurrent-requests", role: roleUsed, unit: "concurrent-requests"},
	{name: "gw-ratelimit-reset", scale: time.Millisecond},

	// A name that is part of the limit's although it looks like a window.
	{name: "anthropic-ratelimit-unified*", unit: "-", keepWindow: true},

	// Lists.
	{name: "x-ratelimit-usage", windows: [2]time.Duration{15 * time.Minute, day}},
	{name: "x-readratelimit-usage", windows: [2]time.Duration{15 * time.Minute, day}},
	{name: "x-shopify-shop-api-call-limit", role: roleQuota, limit: "-"},
	{name: "http-x-shopify-shop-api-call-limit", role: roleQuota, limit: "-"},
	{name: "sforce-limit-info", role: roleList},
	{name: "x-sentry-rate-limits", role: roleSentry, unit: "-"},

	// JSON.
	{name: "x-app-usage", role: roleList, unit: "-", limit: "app"},
	{name: "x-page-usage", role: roleList, unit: "-", limit: "page"},
	{name: "x-ad-account-usage", role: roleList, unit: "-", limit: "ad-account"},
	{name: "x-business-use-case-usage", role: roleList, unit: "-", limit: "-"},
	{name: "x-fb-ads-insights-throttle", role: roleList, unit: "-", limit: "ads-insights"},
}

// rowOf returns the row of a header name, nil if it has none.
func rowOf(low []byte) *row {
	for i := range rows {
		name := rows[i].name
		n := len(name)
		if name[n-1] == '*' {
			if len(low) >= n-1 && string(low[:n-1]) == name[:n-1] {
				return &rows[i]
			}
		} else if len(low) == n && string(low) == name {
			return &rows[i]
		}
	}
	return nil
}

// apply corrects what the grammar made of the name.
func (r *row) apply(m *meaning, names *reader) {
	switch r.unit {
	case "":
	case "-":
		m.unit = ""
	default:
		m.unit = r.unit
	}
	switch r.limit {
	case "":
	case "-":
		m.name = 0
	default:
		m.name = copy(names.out[:], r.limit)
	}
	if r.scale > 0 {
		m.scale = r.scale
	}
}

// hostRow is what only the host tells.
type hostRow struct {
	host  string        // or one below it
	scale time.Duration // what a bare number in a reset counts
	name  string        // of a structured limit whose unit is ...
	unit  string
	means ResetMeans
}

var hostRows = [...]hostRow{
	{host: "api.prisjakt.nu", scale: time.Millisecond},
	{host: "atlassian.net", name: "tenant-app-quota", unit: "points"},
	{host: "api.github.com", means: Boundary},
	{host: "gitlab.com", means: Boundary},
	{host: "api.anthropic.com", means: Full},
	{host: "api.openai.com", means: Full},
	{host: "api.twitch.tv", means: Full},
	{host: "api.hetzner.cloud", means: Full},
	{host: "api.incident.io", means: Full},
}

// hostRowOf returns the row of a host, nil if it has none.
func hostRowOf(host string) *hostRow {
	for i := range hostRows {
		h := hostRows[i].host
		if n := len(host) - len(h); n == 0 && host == h || n > 0 && host[n-1] == '.' && host[n:] == h {
			return &hostRows[i]
		}
	}
	return nil
}
