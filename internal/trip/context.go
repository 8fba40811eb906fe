package trip

import "fmt"

// String is how package context, and whoever logs a context, shows it. What is
// known of a request, such as its credentials, is no part of that.
func (t *Trip) String() string { return fmt.Sprint(t.Context) + ".WithTrip" }

// String is that of a Trip.
func (c *carrier) String() string { return fmt.Sprint(c.Context) + ".WithTrip" }
