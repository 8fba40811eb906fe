package trip

import "fmt"

// String names the context, as package context does when a context is printed. It does
// not print the trip, whose request may have credentials.
func (t *Trip) String() string { return fmt.Sprint(t.Context) + ".WithTrip" }

// String names the context, as Trip.String does.
func (c *carrier) String() string { return fmt.Sprint(c.Context) + ".WithTrip" }
