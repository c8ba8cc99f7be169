package spillway_test

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
)

func TestFieldError(t *testing.T) {
	type word string
	for _, row := range []struct {
		value any
		want  string
	}{
		{1.5, "K is 1.5, must be x"},
		{1e9, "K is 1e+09, must be x"},
		{-1, "K is -1, must be x"},
		{int64(1) << 40, "K is 1099511627776, must be x"},
		{90 * time.Second, "K is 1m30s, must be x"},
		{"a\nb", `K is "a\nb", must be x`},
		{word(strings.Repeat("w", 1000)), `K is "` + strings.Repeat("w", 64) + `"... (1000 bytes), must be x`},
		{spillway.Mode(7), "K is Mode(7), must be x"},
		{netip.MustParsePrefix("10.0.0.0/8"), "K is 10.0.0.0/8, must be x"},
		{[2]int{1, 2}, "K is [1 2], must be x"},
		{nil, "K is nil, must be x"},
		{new(int), "K is set, must be x"},
		{func() {}, "K is set, must be x"},
		{struct{ secret string }{"s"}, "K is set, must be x"},
		{time.UTC, "K is set, must be x"},
	} {
		e := &spillway.FieldError{Path: "K", Value: row.value, Allowed: "x"}
		if e.Error() != row.want || e.Path+" "+e.Problem() != row.want {
			t.Errorf("%T: %q, want %q", row.value, e, row.want)
		}
	}
}

func TestFieldErrorThroughWrapping(t *testing.T) {
	inner := &spillway.FieldError{Path: "Shed.MaxWait", Value: -time.Second, Allowed: "1ms to 10s"}
	if e, ok := errors.AsType[*spillway.FieldError](fmt.Errorf("reload: %w", fmt.Errorf("ingress: %w", inner))); !ok || e != inner {
		t.Errorf("%v, %v", e, ok)
	}
}
