package refill

// What Heard is made of.
var (
	Foresaw = (*Judge).foresaw
	Weighed = (*Judge).weighed
)
