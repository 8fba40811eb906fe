package inspect_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/inspect"
	"github.com/weirhttp/weir/throttle"
)

// call makes a request of api.example with a path of its own.
func call(t *testing.T, w *weir.Transport, path string) error {
	r := request(t.Context(), "api.example")
	r.URL.Path = path
	resp, err := w.RoundTrip(r)
	if err == nil {
		resp.Body.Close()
	}
	return err
}

// TestARouteWaitsForWhatItsOldestRequestWaitsFor: what a host's requests wait for is what the oldest of them waits
// for, not what would be waited for longest by requests that nobody makes; and it
// is said of which route that is so.
func TestARouteWaitsForWhatItsOldestRequestWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := weir.Config{}
		c.Throttle.Budgets = map[string]throttle.Budget{
			"api.example/search": throttle.MustParseBudget("2/m burst 2"),
			"api.example/export": throttle.MustParseBudget("1/h"),
		}
		w := transport(t, answers{"api.example": func(r *http.Request) (int, http.Header) {
			if r.URL.Path == "/items" {
				time.Sleep(200 * time.Millisecond)
			}
			return 200, http.Header{}
		}}, c)
		h := inspect.Handler(w, inspect.Config{})
		for _, path := range []string{"/search", "/search", "/export", "/items"} {
			if err := call(t, w, path); err != nil {
				t.Fatal(err)
			}
		}
		go call(t, w, "/search")
		time.Sleep(10 * time.Second)
		got := hostNamed(t, snapshot(t, h), "api.example")
		if len(got.Why) != 2 || got.Why[0].String() != "api.example/search: 2/m burst 2 is spent" || got.Why[0].For < 49 || got.Why[0].For > 50 ||
			got.Why[1].String() != "api.example/export: 1/h is spent" || got.State != waiting {
			t.Errorf("%s %+v", got.State, got.Why)
		}
		if len(got.Routes) != 3 {
			t.Fatalf("%+v", got.Routes)
		}
		items, export, search := got.Routes[0], got.Routes[1], got.Routes[2] // by name
		if search.State != waiting || search.Queue != 1 || search.OldestWait != 10 || search.Granted != 2 || search.Waited != 1 || search.Why.Text != "2/m burst 2 is spent" {
			t.Errorf("%+v", search)
		}
		if export.State != ok || export.Granted != 1 || export.Why == nil || export.Why.For < 3500 {
			t.Errorf("%+v", export)
		}
		if items.State != ok || items.Why != nil || items.Granted != 1 || items.Latency.Sum != 0.2 || items.Queue != 0 {
			t.Errorf("%+v", items)
		}
		time.Sleep(time.Minute)
	})
}

// TestASpentBudgetIsSaidToBeOfItsRoute: whose budget is spent is said also where
// another route has the same, and where the route is one of so many that it is not
// counted apart.
func TestASpentBudgetIsSaidToBeOfItsRoute(t *testing.T) {
	for _, others := range []int{1, 70} {
		synctest.Test(t, func(t *testing.T) {
			c := weir.Config{}
			c.Throttle.Budgets = map[string]throttle.Budget{
				"api.example/search": throttle.MustParseBudget("2/h burst 2"),
				"api.example/export": throttle.MustParseBudget("2/h burst 2"),
			}
			w := transport(t, answers{}, c)
			for i := range others {
				if err := call(t, w, fmt.Sprintf("/items%d", i)); err != nil {
					t.Fatal(err)
				}
			}
			for _, path := range []string{"/search", "/search", "/export", "/export"} {
				if err := call(t, w, path); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
			}
			got := hostNamed(t, snapshot(t, inspect.Handler(w, inspect.Config{})), "api.example")
			var why []string
			for _, hold := range got.Why {
				why = append(why, hold.String())
			}
			want := []string{"api.example/export: 2/h burst 2 is spent", "api.example/search: 2/h burst 2 is spent"}
			if !slices.Equal(why, want) {
				t.Errorf("of %d other routes: %q, want %q", others, why, want)
			}
		})
	}
}

// TestRowsAreBrief: of 200 hosts a frame holds no routes, of the one that is looked
// at it does.
func TestRowsAreBrief(t *testing.T) {
	w := transport(t, answers{}, weir.Config{})
	send(t, w, "api.example", 1)
	f := look(t, inspect.Handler(w, inspect.Config{}), question{host: "api.example"})
	if f.Rows[0].Routes != nil || f.Rows[0].Latency.Counts != nil || f.Rows[0].Granted != 1 {
		t.Errorf("row %+v", f.Rows[0])
	}
	if len(f.Detail.Routes) != 1 || f.Detail.Routes[0].Name != "GET /" || len(f.Detail.Latency.Counts) == 0 {
		t.Errorf("detail %+v", f.Detail)
	}
}
