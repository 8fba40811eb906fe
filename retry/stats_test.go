package retry

import "testing"

// Each value of the enumerations has words of its own, and no other value has.
func TestWords(t *testing.T) {
	seen := make(map[string]bool)
	check := func(kind, got string, valid bool) {
		t.Helper()
		if valid == (got == "invalid") || valid && got == "" || seen[kind+got] && valid {
			t.Errorf("%s: %q", kind, got)
		}
		seen[kind+got] = true
	}
	for o := range outcomes + 2 {
		check("outcome ", o.String(), o < outcomes)
	}
	for r := range reasons + 2 {
		check("reason ", r.String(), r < reasons)
	}
	for f := range Queue + 3 {
		check("wait ", f.String(), f <= Queue)
	}
	if !(&TimeoutError{}).Temporary() {
		t.Error("a timeout is said to last")
	}
}
