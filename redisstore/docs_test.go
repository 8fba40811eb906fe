package redisstore

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirhttp/weir/throttle/store"
)

// TestCommandsOfAnAccessList: the commands that the documentation names are
// enough, and without INFO all but the notice of a restart works.
func TestCommandsOfAnAccessList(t *testing.T) {
	s := startServer(t)
	named := namedCommands(t, "../docs/fleets.md")
	if here := namedCommands(t, "redisstore.go"); here != named {
		t.Errorf("redisstore.go names %q, docs/fleets.md %q", here, named)
	}
	for user, commands := range map[string]string{"all": named, "less": strings.Replace(named, "+info ", "", 1)} {
		args := []any{"acl", "setuser", user, "on", ">right", "~weir1:*"}
		for _, c := range strings.Fields(commands) {
			args = append(args, c)
		}
		if err := s.client(t).Do(t.Context(), args...).Err(); err != nil {
			t.Fatal(err)
		}
		st := s.store(t, func(o *redis.Options) { o.Username, o.Password = user, "right" })
		b := request(user, 2, meterLimit(10, 0.001))
		r := book(t, st, b, store.BookedAll)
		if whole := r.Keys[0].Gen >= 1<<19; whole != (user == "all") && s.era(t) != "000" {
			t.Errorf("user %q: a state of era %d", user, r.Keys[0].Gen>>19)
		}
		if err := st.Refund(t.Context(), r.Refund(b, 0, []int64{1}, nil)); err != nil {
			t.Error(err)
		}
		for _, n := range []store.News{{Pause: time.Second}, {Resume: true}} {
			if err := st.Tell(t.Context(), user, n); err != nil {
				t.Error(err)
			}
		}
		if r := book(t, st, b, store.BookedAll); r.Keys[0].Levels[0] > 3 {
			t.Errorf("user %q: level %v after a refund", user, r.Keys[0].Levels[0])
		}
	}
}

// namedCommands are those that a file says the user of an access list needs.
func namedCommands(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, list, ok := strings.Cut(string(text), "access lists")
	if _, list, _ = strings.Cut(list, "needs"); !ok {
		t.Fatalf("%s says nothing of access lists", file)
	}
	var named []string
	for _, word := range strings.Fields(strings.ReplaceAll(list, "`", " ")) {
		switch {
		case strings.HasPrefix(word, "+"):
			named = append(named, word)
		case word != "//":
			return strings.Join(named, " ")
		}
	}
	return ""
}

// TestFaultsAreTested: the tests that docs/fleets.md names are there.
func TestFaultsAreTested(t *testing.T) {
	text, err := os.ReadFile("../docs/fleets.md")
	if err != nil {
		t.Fatal(err)
	}
	var tests []byte
	for _, pattern := range []string{"*_test.go", "../filestore/*_test.go", "../throttle/store/*_test.go", "../throttle/internal/fleet/*_test.go"} {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			tests = append(tests, source...)
		}
	}
	named := regexp.MustCompile("`(Test[A-Z][A-Za-z]*)`").FindAllSubmatch(text, -1)
	if len(named) < 9 { // the faults of the table
		t.Errorf("docs/fleets.md names %d tests", len(named))
	}
	for _, m := range named {
		if !bytes.Contains(tests, []byte("\nfunc "+string(m[1])+"(")) {
			t.Errorf("docs/fleets.md names %s, which is not there", m[1])
		}
	}
}

// era is what the server's state is named by.
func (s *server) era(t *testing.T) string {
	info := s.client(t).Info(t.Context(), "replication").Val()
	_, id, _ := strings.Cut(info, "master_replid:")
	return id[:min(3, len(id))]
}
