package throttle

import (
	"strings"
	"testing"
	"time"

	"github.com/weirhttp/weir/throttle/internal/cooldown"
)

// That is so of the first pause, too.
func TestAFirstPauseSaysWhatWasAdded(t *testing.T) {
	at := func(d time.Duration) instant { return instant(time.Hour + d) }
	for _, tt := range []struct {
		added, slack time.Duration
		strikes      int
		want         string
	}{
		{0, 0, 0, "said by Retry-After"},
		{900 * time.Millisecond, 0, 0, "said by Retry-After"},
		{1900 * time.Millisecond, 0, 0, "1.9s longer than the 3s said by Retry-After, so that not all come back at once"},
		{1900 * time.Millisecond, time.Second, 0, "1.9s longer than the 3s said by Retry-After, as such hints were too short before"},
		{42 * time.Second, time.Second, 6, "42s longer than the 3s said by Retry-After, a guess after 7 refusals in a row"},
	} {
		c := cooldown.State{Since: at(0), Sure: at(3 * time.Second), Until: at(3*time.Second + tt.added), Slack: tt.slack, InVain: tt.strikes, Source: "Retry-After"}
		_, got, _ := strings.Cut(pauseWords(at(0), time.Time{}, c), ", ")
		if got != tt.want {
			t.Errorf("%v added, %v of slack, %d refusals before: %q, want %q", tt.added, tt.slack, tt.strikes, got, tt.want)
		}
	}
}
