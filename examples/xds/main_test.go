package main

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestDemonstrate(t *testing.T) {
	var out bytes.Buffer
	if err := demonstrate(&out, 200*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`client: max_requests 20: \d+ served, [1-9]`,
		`client: max_requests 5: \d+ served, [1-9]`,
		`client: max_requests 40: \d+ served`,
		`control plane: users issued \d+, has \d+ in progress, dropped [1-9]`,
	} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("no %s in\n%s", want, out.String())
		}
	}
}

func TestServe(t *testing.T) {
	var out bytes.Buffer
	if err := serve("127.0.0.1:0", strings.NewReader("users 20\nwhat\nusers 5\n"), &out); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Split(out.String(), "\n"); len(lines) != 3 || !strings.HasPrefix(lines[0], `{"xds_servers"`) {
		t.Errorf("%q", lines)
	}
}
