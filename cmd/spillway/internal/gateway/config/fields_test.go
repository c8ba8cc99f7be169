package config

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/policyconf"
)

// TestDefaultsAreDocumented compares the values that zero fields stand for with what the schema says.
func TestDefaultsAreDocumented(t *testing.T) {
	seen, found := make(map[reflect.Type]bool), 0
	var look func(reflect.Type)
	look = func(of reflect.Type) {
		switch of.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			look(of.Elem())
		case reflect.Struct:
			if seen[of] {
				return
			}
			seen[of] = true
			for field := range of.Fields() {
				look(field.Type)
				zero, ok := field.Tag.Lookup("zero")
				if allowed := field.Tag.Get("allowed"); allowed != "" && (!ranges.MatchString(strings.Replace(allowed, "not negative", "at least 0", 1)) ||
					ok && !inRange(parsed(zero, field.Type), allowed)) {
					t.Errorf("%v.%s: %q is no range, or without the default", of, field.Name, allowed)
				}
				if !ok {
					continue
				}
				found++
				if parsed(zero, field.Type).IsZero() {
					t.Errorf("%v.%s: %q cannot be read", of, field.Name, zero)
				}
				says := field.Tag.Get("jsonschema_description") + strings.ReplaceAll(field.Tag.Get("default"), " ", "")
				want := []string{"0 is " + zero, "0is" + zero, "Zeromeans" + zero}
				if field.Type.Kind() == reflect.String {
					want = []string{zero + ", the default", "default is " + zero}
				}
				ofLibrary := field.Type.Kind() == reflect.String && field.Tag.Get("sets") != "" // which documents it
				if !ofLibrary && !slices.ContainsFunc(want, func(text string) bool { return strings.Contains(says, text) }) {
					t.Errorf("%v.%s is %s by default, and the schema says %q", of, field.Name, zero, says)
				}
			}
		default: // a single value
		}
	}
	look(reflect.TypeFor[Config]())
	look(reflect.TypeFor[QuotaServer]())
	if found < 40 {
		t.Errorf("found %d fields with a default", found)
	}
}

// TestFilesHaveAnOrder: the proxy reads its configuration again if the list of files changes.
func TestFilesHaveAnOrder(t *testing.T) {
	c := &Config{Quotas: map[string]Engine{}}
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		c.Quotas[name] = Engine{Redis: &policyconf.Redis{PasswordFile: name}}
	}
	for range 50 {
		if got := strings.Join(c.Files(), " "); got != "a b c d e f" {
			t.Fatalf("the files are %s", got)
		}
	}
}

// TestRanges has a value, its range, and whether it is in it.
func TestRanges(t *testing.T) {
	for _, row := range []struct {
		value   any
		allowed string
		want    bool
	}{
		{time.Millisecond, "1ms to 24h", true},
		{time.Millisecond - 1, "1ms to 24h", false},
		{24 * time.Hour, "1ms to 24h", true},
		{24*time.Hour + 1, "1ms to 24h", false},
		{time.Duration(-1), "not negative", false},
		{time.Duration(0), "not negative", true},
		{0, "1 or more", false},
		{1, "1 or more", true},
		{65535, "at least 65536", false},
		{65536, "at least 65536", true},
		{-1.0, "at most 1", true},
		{1.0, "at most 1", true},
		{1.01, "at most 1", false},
		{math.NaN(), "at most 1", false},
		{1e6, "at most 1e+06", true},
		{0.0, "above 0 and at most 100000", false},
		{1e-9, "above 0 and at most 100000", true},
		{100001.0, "above 0 and at most 100000", false},
		{int64(1 << 24), "at most 16777216", true},
		{int64(1<<24 + 1), "at most 16777216", false},
	} {
		if got := inRange(reflect.ValueOf(row.value), row.allowed); got != row.want {
			t.Errorf("%v in %q: %v", row.value, row.allowed, got)
		}
	}
}
