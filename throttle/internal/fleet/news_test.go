package fleet

import (
	"fmt"
	"slices"
	"testing"

	"github.com/weirhttp/weir/throttle/store"
)

// News that came together is told together; a resume goes before a pause, the
// longer pause before the shorter, of guesses too, and the later word on a quota before the
// earlier.
func TestNewsJoins(t *testing.T) {
	s := func(id string, n int64) store.Stated { return store.Stated{ID: id, Unit: "u", Remaining: n} }
	for _, test := range []struct{ a, b, want store.News }{
		{store.News{}, store.News{}, store.News{}},
		{store.News{Pause: 3}, store.News{Pause: 2}, store.News{Pause: 3}},
		{store.News{Pause: 2}, store.News{Pause: 3}, store.News{Pause: 3}},
		{store.News{Pause: 2}, store.News{Pause: -1}, store.News{Pause: -1}},
		{store.News{Pause: -1}, store.News{Pause: 3}, store.News{Pause: 3}},
		{store.News{Pause: 2}, store.News{}, store.News{Pause: 2}},
		{store.News{Pause: -1}, store.News{}, store.News{Pause: -1}},
		{store.News{Pause: 2, Guess: 4}, store.News{Guess: 3}, store.News{Pause: 2, Guess: 4}},
		{store.News{Guess: 3}, store.News{Guess: 4}, store.News{Guess: 4}},
		{store.News{Guess: 3}, store.News{Pause: -1}, store.News{Pause: -1}},
		{store.News{Pause: -1}, store.News{Guess: 3}, store.News{Pause: -1, Guess: 3}},
		{store.News{Stated: []store.Stated{s("a", 1), s("b", 2)}}, store.News{Stated: []store.Stated{s("b", 3), s("c", 4)}}, store.News{Stated: []store.Stated{s("a", 1), s("b", 3), s("c", 4)}}},
		{store.News{Stated: []store.Stated{{ID: "a", Unit: "v"}}}, store.News{Stated: []store.Stated{s("a", 3)}}, store.News{Stated: []store.Stated{{ID: "a", Unit: "v"}, s("a", 3)}}},
	} {
		if got := join(test.a, test.b); got.Pause != test.want.Pause || got.Guess != test.want.Guess || !slices.Equal(got.Stated, test.want.Stated) {
			t.Errorf("%+v and %+v: %+v", test.a, test.b, got)
		}
	}
	var n store.News
	for i := range 2 * store.MaxStated {
		n = join(n, store.News{Stated: []store.Stated{s(fmt.Sprint(i), 1)}})
	}
	if len(n.Stated) != store.MaxStated {
		t.Errorf("%d quotas", len(n.Stated))
	}
}
