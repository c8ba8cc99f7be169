package spillhttp

import (
	"bytes"
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"testing"
	"testing/synctest"

	"github.com/seed90641741/spillway/ingress"
)

// TestRequestIsGivenBack: what net/http and other middleware look for in the
// request that they have handed on is there.
func TestRequestIsGivenBack(t *testing.T) {
	everyWay(t, func(t *testing.T, protocol string, early bool) {
		t.Setenv("TMPDIR", t.TempDir())
		mux := http.NewServeMux()
		var file string
		mux.HandleFunc("POST /upload/{name}", func(_ http.ResponseWriter, r *http.Request) {
			if err := r.ParseMultipartForm(1); err != nil { // more goes into a file
				t.Error(err)
			}
			f, _, err := r.FormFile("file")
			if err != nil {
				t.Error(err)
				return
			}
			defer f.Close()
			file = f.(*os.File).Name()
		})
		h := mustHandler(t, mux, ingress.Config{Shed: patient}, HandlerConfig{})
		var pattern string
		s := open(t, protocol, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h.ServeHTTP(w, r)
			pattern = r.Pattern
		}), early)
		defer s.close()
		var form bytes.Buffer
		w := multipart.NewWriter(&form)
		_, _ = io.CopyN(must(w.CreateFormFile("file", "large")), zeros{}, 1000)
		w.Close()
		r := newRequest(t, t.Context(), http.MethodPost, &form)
		r.URL.Path = "/upload/large"
		r.Header.Set("Content-Type", w.FormDataContentType())
		r.Header.Set(headerCriticality, "SHEDDABLE")
		readAll(t, must(s.base.RoundTrip(r)))
		synctest.Wait()
		if _, err := os.Stat(file); file == "" || !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the file of the form %q is still there: %v", file, err)
		}
		if pattern != "POST /upload/{name}" {
			t.Errorf("pattern %q", pattern)
		}
	})
}
