package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// watchEvery is the interval at which files are checked for changes.
const watchEvery = time.Second

// A reading is the text of a file at one time, or the error of reading it.
type reading struct {
	file string
	text []byte
	err  error
}

func readingOf(file string) (r reading) {
	r.file = file
	r.text, r.err = os.ReadFile(file)
	return r
}

// parsed returns the configuration that was read, by a parser of its kind.
func parsed[T any](r *reading, parse func(name string, text []byte) (*T, error)) (*T, error) {
	if r.err != nil {
		return nil, r.err
	}
	return parse(r.file, r.text)
}

// fingerprint changes when the text changes, or one of some other files. An unreadable file has a
// fingerprint, too.
func (r *reading) fingerprint(others []string) [sha256.Size]byte {
	h := sha256.New()
	add := func(name string, text []byte, err error) {
		fmt.Fprintf(h, "%q %d %v\n", name, len(text), err != nil)
		h.Write(text)
	}
	add(r.file, r.text, r.err)
	for _, name := range others {
		text, err := os.ReadFile(name)
		add(name, text, err)
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// A follower puts a configuration in place again when its file changes, or one that it names, and makes
// all other changes, too, one at a time.
type follower struct {
	file   string // none: there is nothing to follow
	logger *slog.Logger
	// parse returns the files that a configuration names, and a func that puts it in place.
	parse func(*reading) (files []string, put func() error, err error)

	// Only the goroutine of follow uses these.
	files []string // of the configuration in use
	seen  [sha256.Size]byte

	asks     chan func()   // that follow is to do
	draining chan struct{} // closed when follow has ended: not ready, and no changes from then on
	events   events
}

// newFollower returns a follower of a configuration that was read, with the signals that make it look. From here on a
// change is not missed.
func newFollower(file string, logger *slog.Logger) (f *follower, hangups chan os.Signal) {
	hangups = make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	return &follower{file: file, logger: logger, asks: make(chan func()), draining: make(chan struct{})}, hangups
}

// follow looks for changes until ctx ends.
func (f *follower) follow(ctx context.Context, hangups <-chan os.Signal) {
	looks := time.NewTicker(watchEvery)
	defer looks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangups:
			_ = f.read("SIGHUP") // it has logged an error
		case ask := <-f.asks:
			ask()
		case <-looks.C:
			if f.changed() {
				_ = f.read("a file has changed") // as above
			}
		}
	}
}

func (f *follower) changed() bool {
	if f.file == "" {
		return false
	}
	r := readingOf(f.file)
	return r.fingerprint(f.files) != f.seen
}

// read reloads the file; why is the reason, for the log, which has an error, too.
func (f *follower) read(why string) error {
	if f.file == "" {
		f.logger.Info("there is no file to read again")
		return nil
	}
	// The fingerprint is of the text that is used, and of the other files before they are
	// read: a change in between is detected as a change.
	r := readingOf(f.file)
	f.seen = r.fingerprint(f.files)
	err := f.load(&r)
	f.events.reloaded(plainly(err))
	if err != nil {
		f.logger.Error("reload failed; keeping the previous configuration", "because", why, "error", plainly(err))
		return err
	}
	f.logger.Info("the configuration was read", "because", why)
	return nil
}

// load puts what was read in place, if this program supports it.
func (f *follower) load(r *reading) error {
	files, put, err := f.parse(r)
	if err != nil {
		return err
	}
	seen := r.fingerprint(files)
	if err := put(); err != nil {
		return err
	}
	f.files, f.seen = files, seen
	return nil
}

// errEnds is returned for changes while the program drains.
var errEnds = errors.New("draining")

// do makes a change in the goroutine of follow, which makes all changes.
func (f *follower) do(change func() error) error {
	done := make(chan error, 1)
	select {
	case f.asks <- func() { done <- change() }:
		return <-done
	case <-f.draining:
		return errEnds
	}
}

// ended returns errEnds while the program drains.
func (f *follower) ended() error {
	select {
	case <-f.draining:
		return errEnds
	default:
		return nil
	}
}
