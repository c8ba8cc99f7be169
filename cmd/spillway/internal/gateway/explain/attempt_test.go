package explain

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

// TestAttemptsAreCountedAlike reads the number of the attempt in the text and in JSON: both count from 1.
func TestAttemptsAreCountedAlike(t *testing.T) {
	c := config.ForUpstream("127.0.0.1:0", "127.0.0.1:1")
	c.Listeners[0].Boundary, c.Listeners[0].Peers = "internal", []string{"127.0.0.0/8"}
	for header, want := range map[string]string{"": "1", "1": "1", "4": "4"} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = "127.0.0.1:1"
		r.Header.Set("X-Envoy-Attempt-Count", header)
		e, err := Explain(c, Question{Request: r})
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		if err := e.Write(&text); err != nil {
			t.Fatal(err)
		}
		object, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(text.String(), "attempt      "+want+"\n") || !strings.Contains(string(object), `"attempt":`+want+",") {
			t.Errorf("%q: want attempt %s in\n%s\n%s", header, want, &text, object)
		}
	}
}
