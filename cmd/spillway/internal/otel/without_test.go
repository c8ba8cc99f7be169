//go:build !otel

package otel

import (
	"errors"
	"strings"
	"testing"

	"github.com/seed90641741/spillway/cmd/spillway/internal/config"
)

func TestWithoutTheTag(t *testing.T) {
	e, err := Start(&config.Otel{Endpoint: "http://127.0.0.1:4318"}, "", nil, nil)
	wrong, ok := errors.AsType[*config.Error](err)
	if e != nil || !ok || wrong.Field != "otel" || !strings.Contains(err.Error(), "go build -tags otel") {
		t.Errorf("%v, %v", e, err)
	}
	if e, err = Start(nil, "", nil, nil); e != nil || err != nil {
		t.Errorf("%v, %v", e, err)
	}
	e.Close()
}
