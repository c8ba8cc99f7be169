//go:build unix

package process

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"reflect"
	"syscall"
	"testing"
)

func TestMessage(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	want := Ready{Listeners: map[string]string{"web": "127.0.0.1:8000"}}
	fd, err := syscall.Dup(int(w.Fd())) // Send closes it
	if err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	if err := want.Send(fd); err != nil {
		t.Fatal(err)
	}
	var got Ready
	if err := json.NewDecoder(r).Decode(&got); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	if _, err := r.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("%v, want that the sender has closed the pipe", err)
	}
}
