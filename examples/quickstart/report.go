package main

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	tick      = 100 * time.Millisecond // one column of the timeline
	perLine   = 50                     // columns of one line: five seconds
	labelSize = 26
)

// report prints the results side by side, then when the requests of each came.
func report(w io.Writer, results ...result) {
	row := func(label string, value func(result) string) {
		line := fmt.Sprintf("%-*s", labelSize, label)
		for _, r := range results {
			line += fmt.Sprintf("%-22s", value(r))
		}
		fmt.Fprintln(w, strings.TrimRight(line, " "))
	}
	row("", func(r result) string { return r.name })
	row("time", func(r result) string { return seconds(r.took) })
	row("ideal time", func(result) string { return seconds(ideal(calls)) })
	row("calls that failed", func(r result) string { return fmt.Sprintf("%d of %d", r.failed, calls) })
	row("requests sent", func(r result) string { return fmt.Sprint(len(r.arrivals)) })
	row("answered 429", func(r result) string { return fmt.Sprint(r.refused()) })

	top := 0
	for _, r := range results {
		for _, refused := range []bool{false, true} {
			for _, n := range count(r.arrivals, refused) {
				top = max(top, n)
			}
		}
	}
	fmt.Fprintf(w, "\nrequests per 100 ms, · none, █ %d\n", top)
	for _, r := range results {
		fmt.Fprintf(w, "\n%s\n", r.name)
		timeline(w, r.arrivals, top)
	}
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// timeline prints two rows for each five seconds: the requests that were
// served and those that were refused.
func timeline(w io.Writer, arrivals []arrival, top int) {
	served, refused := bars(count(arrivals, false), top), bars(count(arrivals, true), top)
	for at := 0; at < len(served) || at < len(refused); at += perLine {
		fmt.Fprintf(w, "%4d s  served  %s\n", at*int(tick/time.Millisecond)/1000, part(served, at))
		fmt.Fprintf(w, "        429     %s\n", part(refused, at))
	}
}

// part is perLine columns of row from column at on.
func part(row []rune, at int) string {
	if at >= len(row) {
		return ""
	}
	return strings.TrimRight(string(row[at:min(at+perLine, len(row))]), " ")
}

// count returns how many requests came in each tick.
func count(arrivals []arrival, refused bool) []int {
	var n []int
	for _, a := range arrivals {
		for i := int(a.at / tick); i >= len(n); {
			n = append(n, 0)
		}
		if a.refused == refused {
			n[a.at/tick]++
		}
	}
	return n
}

// bars draws each number as a bar, the full height being top.
func bars(n []int, top int) []rune {
	const levels = "▁▂▃▄▅▆▇█"
	steps := utf8.RuneCountInString(levels)
	row := make([]rune, len(n))
	for i, v := range n {
		row[i] = '·'
		if v > 0 {
			row[i] = []rune(levels)[(v*steps-1)/top]
		}
	}
	return row
}
