package throttle_test

import (
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/weirhttp/weir/throttle"
)

// What one run has learned is there for the next, from a file that only the
// program reads. Where there is none yet, or none that can be read, it starts from
// nothing.
func ExampleTransport_Learned() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-RateLimit-Limit", "5000")
		w.Header().Set("X-RateLimit-Remaining", "4000")
		w.Header().Set("X-RateLimit-Reset", "3600")
	}))
	defer server.Close()
	dir, _ := os.MkdirTemp("", "weir")
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "learned.json")

	for run := range 2 {
		var c throttle.Config
		if text, err := os.ReadFile(file); err == nil {
			if err := json.Unmarshal(text, &c.Learned); err != nil {
				log.Print(err)
			}
		}
		t, err := throttle.New(nil, c)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("run", run, "begins with", len(t.Learned().Hosts), "hosts")
		resp, err := (&http.Client{Transport: t}).Get(server.URL)
		if err != nil {
			log.Fatal(err)
		}
		resp.Body.Close()
		text, _ := json.Marshal(t.Learned())
		if err := os.WriteFile(file, text, 0o600); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// run 0 begins with 0 hosts
	// run 1 begins with 1 hosts
}
