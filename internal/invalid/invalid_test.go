package invalid_test

import (
	"errors"
	"io"
	"testing"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/invalid"
)

func TestPathsCompose(t *testing.T) {
	k := invalid.Field("throttle", "K", 1, "above %d", 1)
	for _, row := range []struct {
		err        error
		path, text string
	}{
		{k, "K", "throttle: K is 1, must be above 1"},
		{invalid.In("egress", "Throttle", k), "Throttle.K", "egress: Throttle.K is 1, must be above 1"},
		{invalid.In("egress", "", k), "K", "egress: K is 1, must be above 1"},
		{invalid.In("sim", "Calls[2]", invalid.In("egress", "Throttle", k)), "Calls[2].Throttle.K", "sim: Calls[2].Throttle.K is 1, must be above 1"},
		{invalid.In("egress", "List", invalid.Field("list", "", 0, "a list")), "List", "egress: List is 0, must be a list"},
		{invalid.At("egress", "Limit", k), "Limit", "egress: Limit is 1, must be above 1"},
		{invalid.In("egress", "Throttle", errors.Join(io.EOF, k)), "Throttle.K", "egress: Throttle.K is 1, must be above 1"},
	} {
		e, ok := errors.AsType[*spillway.FieldError](row.err)
		if !ok || e.Path != row.path || row.err.Error() != row.text || e.Value == nil {
			t.Errorf("%v with path %v, want %s with %s", row.err, e, row.text, row.path)
		}
	}
	if e, _ := errors.AsType[*spillway.FieldError](k); e.Path != "K" {
		t.Errorf("the inner error was changed: %v", e)
	}
}

func TestOtherErrors(t *testing.T) {
	if err := invalid.In("p", "F", nil); err != nil {
		t.Error(err)
	}
	if err := invalid.At("p", "F", nil); err != nil {
		t.Error(err)
	}
	for _, in := range []error{invalid.In("p", "F", io.EOF), invalid.At("p", "F", io.EOF)} {
		if in.Error() != "p: F: EOF" || !errors.Is(in, io.EOF) {
			t.Error(in)
		}
	}
	if err := invalid.In("p", "", io.EOF); err.Error() != "p: EOF" || !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}
