package headers

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// These tests are in the package because a Signal has only the members that are of
// interest, and not what the scanner made of the others.

// flatten lists the values of a document with the keys that lead to them, as
// encoding/json reads it.
func flatten(d *json.Decoder, key string, out *[]string) error {
	tok, err := d.Token()
	if err != nil {
		return err
	}
	switch v := tok.(type) {
	case json.Delim:
		*out = append(*out, "open "+key)
		for d.More() {
			k := key
			if v == '{' {
				name, err := d.Token()
				if err != nil {
					return err
				}
				k = name.(string)
			}
			if err := flatten(d, k, out); err != nil {
				return err
			}
		}
		d.Token()
		*out = append(*out, "close")
	case string:
		*out = append(*out, fmt.Sprintf("%s=%q", key, v))
	case nil:
		*out = append(*out, key+"=null")
	default:
		*out = append(*out, fmt.Sprintf("%s=%v", key, v))
	}
	return nil
}

func scanned(s string) (out []string) {
	j := scanner{s: s}
	for {
		switch e := j.next(); e.kind {
		case eventEnd:
			return out
		case eventOpen:
			out = append(out, "open "+e.key)
		case eventClose:
			out = append(out, "close")
		default:
			text := e.text
			if e.quoted {
				text = fmt.Sprintf("%q", text)
			}
			out = append(out, e.key+"="+text)
		}
	}
}

// document writes a random value.
func document(r *rand.Rand, depth int) any {
	words := []string{"", "a", "retry_after", "ü", `say "hi"`, `back\slash`, "tab\tline\n", "/slash", "é€😀"}
	switch n := r.IntN(7); {
	case n < 2 && depth > 0:
		list := []any{}
		for range r.IntN(4) {
			list = append(list, document(r, depth-1))
		}
		return list
	case n < 4 && depth > 0:
		m := map[string]any{}
		for range r.IntN(4) {
			m[words[1:4][r.IntN(3)]+fmt.Sprint(r.IntN(9))] = document(r, depth-1)
		}
		return m
	case n == 4:
		return json.Number(fmt.Sprint(r.IntN(1000)))
	case n == 5:
		return []any{true, false, nil}[r.IntN(3)]
	}
	return words[r.IntN(len(words))]
}

// The scanner sees in a document what encoding/json sees in it; but for white
// space, which it has no need to tell apart.
func TestScannerAgreesWithEncodingJSON(t *testing.T) {
	blanks := strings.NewReplacer(`\t`, " ", `\n`, " ")
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 0))
		text, err := json.Marshal(document(r, 5))
		if err != nil {
			t.Fatal(err)
		}
		if seed%2 == 0 {
			var b strings.Builder
			e := json.NewEncoder(&b)
			e.SetIndent("\r\n", "\t ")
			e.Encode(json.RawMessage(text))
			text = []byte(b.String())
		}
		d := json.NewDecoder(strings.NewReader(string(text)))
		d.UseNumber()
		var want []string
		if err := flatten(d, "", &want); err != nil {
			t.Fatal(err)
		}
		got := scanned(string(text))
		if g, w := blanks.Replace(strings.Join(got, "\n")), blanks.Replace(strings.Join(want, "\n")); g != w {
			t.Fatalf("seed %d: %s\ngot  %v\nwant %v", seed, text, got, want)
		}
	}
}

// What has no end is not reported, and nothing behind it.
func TestScannerOfWhatWasCut(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":12`: "open ", `{"a":12,`: "open |a=12", `{"a":"12`: "open ", `{"a":"12"`: `open |a="12"`, `{"a`: "open ", `{"a":{"b":1}`: "open |open a|b=1|close",
		`12`: "=12", ``: "", `"`: "", `"a"`: `="a"`, `}}1`: "close|close|=1", `[1,[2],3]`: "open |=1|open |=2|close|=3|close",
		`{"a":[1,{"b":2}]}`: "open |open a|a=1|open a|b=2|close|close|close", `{"a":tru}`: "open |a=tru|close",
		`{"a\"b":1}`: `open |a"b=1|close`, `"\u00e9"`: `="é"`, `"a\"`: "",
		strings.Repeat("[", maxDepth+1): strings.Repeat("open |", maxDepth-1) + "open ",
		`{"a" : 1}`:                     "open |a=1|close", `["a":1]`: `open |="a"|=1|close`, `"a":1`: `="a"|=1`, `{"a":"b":1}`: `open |a="b"|=1|close`,
	} {
		if got := strings.Join(scanned(text), "|"); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}
