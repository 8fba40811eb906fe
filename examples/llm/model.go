package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// model is a stand-in for a language model: it has one answer, and each call
// uses 120 tokens.
type model struct{}

const (
	wisdom = "It depends on your ruler."
	used   = 120
)

func (model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var ask struct{ Stream bool }
	if err := json.NewDecoder(r.Body).Decode(&ask); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if !ask.Stream {
		fmt.Fprintf(w, `{"text": %q, "usage": {"total_tokens": %d}}`, wisdom, used)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for word := range strings.SplitAfterSeq(wisdom, " ") {
		fmt.Fprintf(w, "data: {\"text\": %q}\n\n", word)
		w.(http.Flusher).Flush()
	}
	fmt.Fprintf(w, "data: {\"usage\": {\"total_tokens\": %d}}\n\ndata: [DONE]\n\n", used)
}
