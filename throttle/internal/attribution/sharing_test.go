package attribution_test

import (
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/weirhttp/weir/throttle/internal/attribution"
)

var seed = maphash.MakeSeed()

func get(path string) attribution.Where { return attribution.WhereOf(seed, "GET", path) }

// What is taken in at once, of one answer after the other to the same path, is what would be
// taken in otherwise.
func TestAnswersToOnePathAreTakenInAtOnce(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 7))
	at := []attribution.Where{get("/a"), get("/a"), get("/a/1"), get("/a/2"), get("/b"), {}}
	for range 100 {
		var short, long attribution.Sharing
		left := 1000.0
		w := at[0]
		for i := range 100 {
			if rng.IntN(5) == 0 {
				w = at[rng.IntN(len(at))]
			}
			cost, open := float64(rng.IntN(3)), float64(rng.IntN(20)/16)
			if left -= cost; rng.IntN(30) == 0 {
				left += float64(rng.IntN(40) - 20)
			}
			if rng.IntN(50) == 0 {
				short.Refused(w, i%2 == 0)
				long.Refused(w, i%2 == 0)
			}
			short.Answered(w, left, cost, open)
			attribution.LookAgain(&long)
			long.Answered(w, left, cost, open)
			got := short
			attribution.LookAgain(&got)
			if attribution.LookAgain(&long); !reflect.DeepEqual(got, long) {
				t.Fatalf("after %d answers\n%+v, want\n%+v", i+1, got, long)
			}
		}
	}
}

// Paths that differ in what may be an id have a stem in common.
func TestStemsLeaveIDsOut(t *testing.T) {
	for _, test := range []struct {
		a, b string
		is   attribution.Depth // how finely b is told apart from a
	}{
		{"/users/7/posts", "/users/81/posts", attribution.ByPath},
		{"/users/7/posts", "/users/7/likes", attribution.ByStem},
		{"/a/x:y", "/a/b%20c", attribution.ByPath},
		{"/a/b", "/a/c", attribution.ByStem},
		{"/a/" + strings.Repeat("x", 33) + "/b", "/a/" + strings.Repeat("y", 40) + "/b", attribution.ByPath},
		{"/a/" + strings.Repeat("x", 32), "/a/" + strings.Repeat("y", 32), attribution.ByStem},
		{"/a/1", "/a/", attribution.ByPath},
		{"/a/1/", "/a/", attribution.ByStem},
	} {
		var s attribution.Sharing
		s.Answered(get(test.a), 10, 1, 0)
		if d, strange := s.Strange(get(test.b)); !strange || d != test.is {
			t.Errorf("%s after %s: depth %d, strange %t", test.b, test.a, d, strange)
		}
		if _, strange := s.Strange(get(test.a)); strange {
			t.Errorf("%s is strange to itself", test.a)
		}
	}
	var s attribution.Sharing
	s.Answered(get("/a"), 10, 1, 0)
	if _, strange := s.Strange(attribution.Where{}); strange {
		t.Error("what tells nothing is strange")
	}
}

// Answers in turn to two paths settle what they share: what is left falls by what both
// have drawn, or by what each has.
func TestWhoSharesIsCounted(t *testing.T) {
	for _, test := range []struct {
		name  string
		a, b  string
		one   bool
		depth attribution.Depth
	}{
		{"two stems, one limit", "/a", "/b", true, 0},
		{"two ids, one limit", "/a/1", "/a/2", true, 0},
		{"two stems, a limit each", "/a", "/b", false, attribution.ByStem},
		{"two ids, a limit each", "/a/1", "/a/2", false, attribution.ByPath},
	} {
		var s attribution.Sharing
		left := map[string]float64{test.a: 1000, test.b: 1000}
		divided, depth := false, attribution.Depth(0)
		for i := 0; i < 200 && !divided; i++ {
			path := test.a
			if i%2 == 1 {
				path = test.b
			}
			left[path]--
			if test.one {
				left[test.a], left[test.b] = min(left[test.a], left[path]), min(left[test.b], left[path])
			}
			s.Answered(get(path), left[path], 1, 0)
			depth, divided = s.Divided()
		}
		if divided == test.one || depth != test.depth {
			t.Errorf("%s: divided %t, to depth %d", test.name, divided, depth)
		}
		if s.Unsure() == test.one {
			t.Errorf("%s: unsure %t", test.name, s.Unsure())
		}
		if !divided {
			continue
		}
		s.Divide(depth)
		if !s.Binds(get(test.a)) || s.Binds(get("/z/3")) || s.Settled() {
			t.Errorf("%s: once divided, it binds what it was seen with, and nothing else", test.name)
		}
	}
}

// A path that a spent limit was not seen with may ask whether it has its own, until two
// of those were refused.
func TestStrangePathsAsk(t *testing.T) {
	var s attribution.Sharing
	s.Answered(get("/a"), 0, 1, 0)
	if s.MayAsk(get("/a"), 1) {
		t.Error("it is known to have nothing left")
	}
	for i := range 2 {
		path := get(fmt.Sprint("/new-", string(rune('a'+i))))
		if !s.MayAsk(path, 1) {
			t.Fatalf("the %d. may not ask", i+1)
		}
		s.Refused(path, true)
	}
	if s.MayAsk(get("/other"), 1) {
		t.Error("two were refused that asked, and a third may")
	}
}

// However many paths a server is asked for, what is kept of them is bounded: with more
// it is one limit.
func TestManyPathsAreOneLimit(t *testing.T) {
	var s attribution.Sharing
	for i := range 10000 {
		s.Answered(get(fmt.Sprintf("/%c%c%c", 'a'+i%26, 'a'+i/26%26, 'a'+i/676%26)), 50, 1, 0)
	}
	if !s.Settled() {
		t.Error("ten thousand paths are still compared")
	}
}

// Requests of another method have a stem of their own, and where one segment of a path
// ends tells stems apart.
// If they are told apart after all, what came to the last path is counted anew.
func TestManyPathsThatAreOneLimitMayBeDivided(t *testing.T) {
	var s attribution.Sharing
	last := get("/x")
	for i := range 300 {
		s.Answered(get("/"+strings.Repeat("y", i)), 1000, 1, 0)
	}
	s.Answered(last, 1000, 1, 0)
	s.Divide(attribution.ByStem)
	s.Answered(last, 999, 1, 0)
	s.Answered(last, 998, 1, 0)
	if !s.Binds(last) || s.Binds(get("/new")) {
		t.Error("a divided limit binds those that it was stated to")
	}
}

func TestMethodsAndSegmentsTellStemsApart(t *testing.T) {
	for _, other := range []attribution.Where{attribution.WhereOf(seed, "PUT", "/a/b"), get("/ab"), get("/a/b/"), get("/a")} {
		var s attribution.Sharing
		s.Answered(get("/a/b"), 10, 1, 0)
		if d, strange := s.Strange(other); !strange || d != attribution.ByStem {
			t.Errorf("depth %d, strange %t", d, strange)
		}
	}
}

// A path of any length is told from others: by its stem, and by the ids in it.
func TestLongPathsAreToldApart(t *testing.T) {
	long := strings.Repeat("/segment", 1000)
	for _, tt := range []struct {
		name       string
		other      attribution.Where
		stem, path bool // is the same
	}{
		{"the same", get(long + "/1"), true, true},
		{"another id", get(long + "/2"), true, false},
		{"another word at its end", get(long + "/a/1"), false, false},
		{"another word at its beginning", get("/a" + long + "/1"), false, false},
	} {
		var s attribution.Sharing
		s.Answered(get(long+"/1"), 10, 1, 0)
		if d, strange := s.Strange(tt.other); strange == tt.path || strange && (d == attribution.ByPath) != tt.stem {
			t.Errorf("%s: depth %d, strange %t", tt.name, d, strange)
		}
	}
}

// Until it is sure who shares a limit, a path that had something left when it was last
// answered may ask, though another says that nothing is.
func TestKnownPathsAskByWhatTheyHadLeft(t *testing.T) {
	var s attribution.Sharing
	s.Answered(get("/a"), 3, 1, 0)
	s.Answered(get("/b"), 0, 1, 0)
	for n, want := range map[float64]bool{3: true, 4: false} {
		if s.MayAsk(get("/a"), n) != want {
			t.Errorf("%v units of 3 that were left: may ask %t", n, !want)
		}
	}
	if s.MayAsk(get("/b"), 1) {
		t.Error("it has nothing left")
	}
}

// A limit that is told apart by stems binds all ids of a stem that it was seen with; one
// that is told apart by paths, the path alone.
func TestWhatADividedLimitBinds(t *testing.T) {
	for depth, others := range map[attribution.Depth]bool{attribution.ByStem: true, attribution.ByPath: false} {
		var s attribution.Sharing
		s.Answered(get("/a/1"), 10, 1, 0)
		if !s.Binds(get("/z/9")) {
			t.Error("before, it binds everything")
		}
		s.Divide(depth)
		if s.Depth() != depth || !s.Binds(get("/a/1")) || s.Binds(get("/a/2")) != others || s.Binds(get("/b/1")) {
			t.Errorf("depth %d: it binds %t, %t, %t", s.Depth(), s.Binds(get("/a/1")), s.Binds(get("/a/2")), s.Binds(get("/b/1")))
		}
	}
}

func TestSeveralPathsWereSeen(t *testing.T) {
	for _, test := range []struct {
		urls []string
		want bool
	}{
		{nil, false},
		{[]string{"/a/1", "/a/1"}, false},
		{[]string{"/a/1", "/a/2"}, true},
		{[]string{"/a", "/b"}, true},
	} {
		var s attribution.Sharing
		for i, url := range test.urls {
			s.Answered(get(url), float64(10-i), 1, 0)
		}
		if s.Several() != test.want {
			t.Errorf("%v: several %t, want %t", test.urls, s.Several(), test.want)
		}
	}
}
