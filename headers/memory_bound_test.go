package headers

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// This test is in the package because a Memory does not say how much it keeps.

// Whatever a host sends, a Memory keeps a few short layouts, and looks for new ones
// seldom.
func TestMemoryIsBounded(t *testing.T) {
	var m Memory
	for n := range 1000 {
		h := http.Header{}
		for k := range n%40 + 1 {
			h[fmt.Sprintf("X-Ratelimit-Remaining-%d-%s", n*k, strings.Repeat("x", n%200))] = []string{"7"}
			h[fmt.Sprintf("X-Id-%d-%d", n, k)] = []string{strings.Repeat("a", 9999)}
		}
		h.Set("X-Ratelimit-Resource", strings.Repeat("r", n*10))
		h.Set("X-Ratelimit-Limit", "7")
		m.Parse(&http.Response{StatusCode: 200, Header: h}, time.Time{})
		for i := range m.kept.Load().layouts {
			f := m.kept.Load().layouts[i].Load()
			if f == nil {
				continue
			}
			if len(f.slots) > maxSlots || len(f.names) > maxNames || f.text() > maxLayoutText {
				t.Fatalf("layout of %d headers, %d names, %d bytes", len(f.slots), len(f.names), f.text())
			}
		}
	}
}
