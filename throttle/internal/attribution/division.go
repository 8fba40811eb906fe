package attribution

// A Division says how requests of one kind fall into parts that have limits of their own. The zero
// Division is into none.
type Division struct {
	Way   Way
	Split Split // All: there are none; Few: those that there are share one limit; Each: each has its own
	Every bool  // all parts have limits, not only those that were refused
}

// String is w in words, one part.
func (w Way) String() string {
	return [Ways]string{ByHead: "object", ByForm: "path form", ByFull: "URL"}[w]
}

// String is d in words, which DivisionOf understands; "": there are no parts.
func (d Division) String() string {
	switch d {
	case Division{d.Way, Each, true}:
		return "each " + d.Way.String()
	case Division{d.Way, Each, false}:
		return "some " + d.Way.String() + "s"
	case Division{d.Way, Few, true}:
		return "all " + d.Way.String() + "s together"
	case Division{d.Way, Few, false}:
		return "some " + d.Way.String() + "s together"
	}
	return ""
}

// DivisionOf is the Division of those words. Words that it does not know are those of none.
func DivisionOf(text string) (d Division) {
	for w := range Ways {
		for _, d := range [...]Division{{w, Each, true}, {w, Each, false}, {w, Few, true}, {w, Few, false}} {
			if d.String() == text {
				return d
			}
		}
	}
	return Division{}
}
