package operator

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// A UsageError is a mistake in the arguments or in the configuration that they name.
type UsageError struct{ error }

// Unwrap returns the error without its mark.
func (e UsageError) Unwrap() error { return e.error }

// errUnconfirmed says how to go on without a yes.
var errUnconfirmed = UsageError{errors.New("the mode is not changed: answer y, or give --yes")}

// confirmed asks at the terminal whether to go on. It returns an error unless the answer is yes; without a terminal there is no answer.
func confirmed(ctx context.Context, out io.Writer) error {
	if info, err := os.Stdin.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return errUnconfirmed
	}
	fmt.Fprint(out, "Change the mode? [y/N] ")
	answers := make(chan string, 1)
	go func() { // it ends with the program
		line, _ := bufio.NewReader(os.Stdin).ReadString('\n')
		answers <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case <-ctx.Done():
		return errUnconfirmed
	case answer := <-answers:
		if answer == "y" || answer == "yes" {
			return nil
		}
		return errUnconfirmed
	}
}
