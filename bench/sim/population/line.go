package population

// A Line is what the test that plays cases hands to the program that asked for
// them: one before each run, and one after it.
type Line struct {
	Index    int
	Began    string    `json:",omitempty"` // the caller
	Result   *Result   `json:",omitempty"`
	Arrivals []Arrival `json:",omitempty"` // if a single case was asked for
}
