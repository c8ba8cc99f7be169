package spillxds

import (
	"fmt"
	"runtime/debug"
)

// A panicError is what code of the user has panicked with in a goroutine of the Client, where no caller could recover.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string {
	return fmt.Sprintf("spillxds: code of the user has panicked: %v\n%s", e.value, e.stack)
}

// Unwrap returns the value, if it is an error.
func (e *panicError) Unwrap() error {
	err, _ := e.value.(error)
	return err
}

// recovered makes a panic the error of the function that defers it, and counts it.
func (c *Client) recovered(err *error) {
	if p := recover(); p != nil {
		*err = &panicError{p, debug.Stack()}
		c.count(func(s *Stats) { s.PanicsTotal++ })
	}
}

// observe calls the Observer.
func (c *Client) observe(e Event) (err error) {
	defer c.recovered(&err)
	c.config.Observer(e)
	return nil
}
