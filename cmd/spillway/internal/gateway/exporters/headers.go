package exporters

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// keyed adds the headers of a file to each request. It reads the file again for each request.
type keyed struct {
	file string
	*http.Transport
}

func (k keyed) RoundTrip(r *http.Request) (*http.Response, error) {
	more, err := headers(k.file)
	if err != nil {
		return nil, errors.Join(err, r.Body.Close())
	}
	r = r.Clone(r.Context())
	maps.Copy(r.Header, more)
	return k.Transport.RoundTrip(r)
}

// headers reads a file of headers; an empty name yields no headers. Errors do not show the
// content.
func headers(file string) (http.Header, error) {
	all := make(http.Header)
	if file == "" {
		return all, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("otel.headers_file: %w", err)
	}
	for i, line := range strings.Split(string(text), "\n") {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		if !ok || !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return nil, fmt.Errorf("otel.headers_file: line %d of %s is not NAME: VALUE", i+1, file)
		}
		all.Add(name, value)
	}
	return all, nil
}
