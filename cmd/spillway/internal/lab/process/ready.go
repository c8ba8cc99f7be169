package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
)

// Ready is the message of a proxy to the process that started it: it accepts connections, at these
// addresses. The message goes through a pipe that the child inherits.
type Ready struct {
	Listeners map[string]string `json:"listeners"` // the address of each, by name
}

// Send writes the message, one line of JSON, to a file descriptor of this process, and closes it.
func (m Ready) Send(fd int) error {
	f := os.NewFile(uintptr(fd), "ready")
	if f == nil {
		return fmt.Errorf("--ready-fd is %d, must be an open file descriptor", fd)
	}
	if err := errors.Join(json.NewEncoder(f).Encode(m), f.Close()); err != nil {
		return fmt.Errorf("--ready-fd is %d: %w", fd, err)
	}
	return nil
}
