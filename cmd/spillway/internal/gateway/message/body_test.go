package message

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/resources"
)

// TestReadAheadPutsBackWhatItHasRead runs out of memory in the middle of a body.
func TestReadAheadPutsBackWhatItHasRead(t *testing.T) {
	t.Cleanup(func() { resources.Memory.SetLimit(0) })
	text := bytes.Repeat([]byte("0123456789"), 5000)
	for _, limit := range []int64{1, firstBuffer, 3 * firstBuffer, 40_000, -1} {
		resources.Memory.SetLimit(limit)
		r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/", bytes.NewReader(text))
		var a Account
		if err := a.ReadAhead(r, 64<<10); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r.Body); err != nil || !bytes.Equal(got, text) {
			t.Errorf("limit %d: %d bytes, %v", limit, len(got), err)
		}
		if (r.GetBody != nil) != (limit < 0) {
			t.Errorf("limit %d: kept as a whole: %v", limit, r.GetBody != nil)
		}
		a.Close()
		if used := resources.Memory.Used(); used != 0 {
			t.Errorf("limit %d: %d bytes are left", limit, used)
		}
	}
}
