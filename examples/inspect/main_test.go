package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/inspect"
)

// inMemory serves requests on the caller's goroutine, so that minutes pass in
// virtual time.
type inMemory struct{ h http.Handler }

func (m inMemory) RoundTrip(r *http.Request) (resp *http.Response, err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("the connection broke")
		}
	}()
	w := httptest.NewRecorder()
	r = r.Clone(r.Context())
	r.Host = r.URL.Host
	m.h.ServeHTTP(w, r)
	resp = w.Result()
	resp.Request = r
	return resp, nil
}

// Each API gets into the trouble that the page is to show.
func TestEveryTroubleShows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport, err := weir.New(inMemory{newWorld()}, config())
		if err != nil {
			t.Fatal(err)
		}
		defer transport.Close()
		page := inspect.Handler(transport, inspect.Config{})
		ctx, cancel := context.WithTimeout(t.Context(), 65*time.Second)
		defer cancel()
		done := make(chan struct{})
		go func() {
			traffic(ctx, &http.Client{Transport: transport})
			close(done)
		}()

		states := make(map[string][]string)
		learned := make(map[string]bool)
		for ctx.Err() == nil {
			for _, h := range look(t, page).Hosts {
				if !slices.Contains(states[h.Name], h.State) {
					states[h.Name] = append(states[h.Name], h.State)
				}
				for _, f := range h.Learned {
					if strings.Contains(f.Source, "RateLimit") || strings.Contains(f.Source, "refusals") {
						learned[h.Name] = true
					}
				}
			}
			time.Sleep(500 * time.Millisecond)
		}
		<-done
		for api, want := range map[string]string{
			"maps.example": "waiting", "files.example": "waiting", "payments.example": "paused",
			"mail.example": "open", "cdn.example": "ok",
		} {
			if !slices.Contains(states[api], want) {
				t.Errorf("%s was %v, never %s", api, states[api], want)
			}
		}
		for _, api := range []string{"tickets.example", "search.example"} {
			if !learned[api] {
				t.Errorf("nothing was learned about %s", api)
			}
		}
	})
}

func look(t *testing.T, page http.Handler) (s inspect.Snapshot) {
	t.Helper()
	w := httptest.NewRecorder()
	page.ServeHTTP(w, httptest.NewRequest("GET", "http://localhost/stats.json", nil))
	if err := json.Unmarshal(w.Body.Bytes(), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// The program ends when it is told to, and its page is there before.
func TestRun(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- run(ctx, "127.0.0.1:0", false) }()
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), "256.0.0.1:0", false); err == nil {
		t.Error("served where nobody can be")
	}
}
