package config

import (
	"reflect"
	"slices"
	"strings"
	"testing"

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
				if !ok {
					continue
				}
				found++
				if parsed(zero, field.Type).IsZero() {
					t.Errorf("%v.%s: %q cannot be read", of, field.Name, zero)
				}
				says := field.Tag.Get("jsonschema_description") + strings.ReplaceAll(field.Tag.Get("default"), " ", "")
				want := []string{"0 is " + zero, "Zeromeans" + zero}
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
