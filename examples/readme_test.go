package examples_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/spillhttp"
)

// Example_readme is the code of the README, which TestReadme holds it to.
func Example_readme() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println("server:", r.Header.Get("X-Request-Criticality"))
	}))
	defer server.Close()
	url := server.URL

	// README
	transport, err := spillhttp.NewTransport(spillhttp.TransportConfig{})
	if err != nil {
		log.Fatal(err)
	}
	client := &http.Client{Transport: transport}

	ctx := spillway.WithCriticality(context.Background(), spillway.SheddablePlus) // batch work
	req, _ := http.NewRequestWithContext(ctx, "GET", url, nil)
	resp, err := client.Do(req)
	if errors.Is(err, spillway.ErrRejected) {
		fmt.Println(err) // refused here: the backend was never called
	}
	// README

	if err == nil {
		fmt.Println("client:", resp.Status)
		resp.Body.Close()
	}
	// Output:
	// server: SHEDDABLE_PLUS
	// client: 200 OK
}

func TestReadme(t *testing.T) {
	readme := read(t, "../README.md")
	parts := strings.Split(read(t, "readme_test.go"), "// README\n")
	code := strings.TrimSpace(strings.ReplaceAll(strings.TrimSuffix(parts[1], "\t"), "\n\t", "\n"))
	if !strings.Contains(readme, "```go\n"+code+"\n```") {
		t.Errorf("the README does not hold the code of Example_readme:\n%s", code)
	}
	for _, command := range []string{"go run ./cmd/spillway drill", "go test work"} {
		if !strings.Contains(readme, command+"\n") {
			t.Errorf("the README does not hold the command %q", command)
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
