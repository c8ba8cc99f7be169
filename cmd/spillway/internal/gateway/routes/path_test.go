package routes

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

// paths combines what servers have read in different ways.
func paths() (all []string) {
	segments := []string{
		"", ".", "..", "...", "%2e", "%2E", "%2e.", ".%2e", "%2e%2e", "..;", "..;x=1", ";x", "a;x=1", "%2f", "%2F..", "..%2f", "\\", "..\\", "%5c", "..%5c", "%252e%252e", "%252f", "%00", "a%00", "%c0%ae", "%u002e",
		"a", "healthz", "%68ealthz", "HEALTHZ", "healthz.", "healthz%20", "healthz%09", "healthzebra", "healthz;x", "export", "a.b", ".a", "a.", "é", "%c3%a9", "*", "+", "%2B", "~", "%7e",
	}
	for _, a := range segments {
		all = append(all, "/"+a)
		for _, b := range segments {
			all = append(all, "/"+a+"/"+b, "/healthz/"+a+"/"+b, "/"+a+"/"+b+"/", "/x/"+a+"//"+b+"/export")
		}
	}
	return all
}

// mux says how net/http takes a path: where it redirects to, or the path itself.
func mux(t testing.TB, escaped string) string {
	t.Helper()
	m := http.NewServeMux()
	m.HandleFunc("/", func(http.ResponseWriter, *http.Request) {})
	r := httptest.NewRequest(http.MethodGet, "/", nil) // nothing is waited for
	u, err := url.ParseRequestURI(escaped)
	if err != nil {
		return escaped
	}
	r.URL = u
	w := httptest.NewRecorder()
	if m.ServeHTTP(w, r); w.Code < 300 || w.Code > 399 {
		return u.EscapedPath()
	}
	to, err := url.Parse(w.Header().Get("Location"))
	if err != nil {
		t.Fatal(err)
	}
	return to.Path // which is the escaped path, escaped again
}

// same fails if a path is not made straight as net/http does it, is not straight then, or is not
// sent on as it came. Escaped dots net/http leaves, which others do not.
func same(t testing.TB, escaped string) {
	t.Helper()
	u, err := url.ParseRequestURI(escaped)
	if err != nil || !strings.HasPrefix(escaped, "/") {
		return
	}
	sent(t, &http.Request{URL: u, RequestURI: escaped})
	escaped = u.EscapedPath()
	got := resolve(escaped, isDots, true)
	if again := resolve(got, isDots, true); again != got {
		t.Errorf("%q becomes %q, and that %q", escaped, got, again)
	}
	for s := range strings.SplitSeq(strings.Trim(got, "/"), "/") {
		if isDots(s) != "" || s == "" && got != "/" {
			t.Errorf("%q becomes %q, which has the segment %q", escaped, got, s)
		}
	}
	// Dots alone are unescaped: what else is escaped stays so.
	segments := strings.Split(escaped, "/")
	for i, s := range segments {
		if d := isDots(s); d != "" {
			segments[i] = d
		}
	}
	plainDots := strings.Join(segments, "/")
	if v, err := url.ParseRequestURI(plainDots); err == nil {
		want := mux(t, plainDots)
		if strings.HasSuffix(v.EscapedPath(), "/.") || strings.HasSuffix(v.EscapedPath(), "/..") {
			// RFC 3986, section 5.2.4, leaves the slash.
			want = strings.TrimSuffix(want, "/") + "/"
		}
		if got != want {
			t.Errorf("%q becomes %q, by net/http %q", escaped, got, want)
		}
	}
}

// sent fails if a request is not sent on with the target that it came with.
func sent(t testing.TB, r *http.Request) {
	t.Helper()
	if !sendable(r) {
		return
	}
	out := *r.URL
	out.Scheme, out.Host = "http", "endpoint.test"
	Send(&out, r)
	if got := out.RequestURI(); got != r.RequestURI {
		t.Errorf("%q is sent on as %q", r.RequestURI, got)
	}
}

func TestPathsAreStraight(t *testing.T) {
	for _, p := range paths() {
		same(t, p)
	}
}

// FuzzPath is the same for anything, and holds what is exempt to be nothing else.
func FuzzPath(f *testing.F) {
	for i, p := range paths() {
		if i%60 == 0 { // the rest is tested without fuzzing
			f.Add(p)
		}
	}
	exact := newRoute(&config.Listener{}, &config.Route{Path: "/healthz", Exempt: true})
	below := newRoute(&config.Listener{}, &config.Route{Path: "/health/", Exempt: true, Prefix: true})
	f.Fuzz(func(t *testing.T, p string) {
		same(t, p)
		exempts(t, exact, below, p)
	})
}

// lenient normalizes a path with each of the steps that known servers apply, repeatedly.
func lenient(p string) string {
	for range 3 {
		if decoded, err := url.PathUnescape(p); err == nil {
			p = decoded
		}
		p = strings.ReplaceAll(p, "\\", "/")
		var kept []string
		for s := range strings.SplitSeq(p, "/") {
			s, _, _ = strings.Cut(s, ";")
			s, _, _ = strings.Cut(s, "\x00")
			switch s {
			case "", ".":
			case "..":
				kept = kept[:max(0, len(kept)-1)]
			default:
				kept = append(kept, s)
			}
		}
		p = "/" + strings.Join(kept, "/")
	}
	return p
}

// exempts fails if a path is exempt that a lenient server takes for another one.
func exempts(t testing.TB, exact, below *Route, p string) {
	t.Helper()
	u, err := url.ParseRequestURI(p)
	if err != nil || u.Path == "" || u.Path[0] != '/' {
		return
	}
	r := &http.Request{Method: http.MethodGet, URL: u, RequestURI: p}
	if !sendable(r) {
		return
	}
	sent := RawPath(r)
	if exact.Miss(r, Path(r), "") == "" && lenient(sent) != "/healthz" {
		t.Errorf("%q is exempt, and sent on as %q, which may be read as %q", p, sent, lenient(sent))
	}
	if below.Miss(r, Path(r), "") == "" && lenient(sent) != "/health" && !strings.HasPrefix(lenient(sent), "/health/") {
		t.Errorf("%q is exempt, and sent on as %q, which may be read as %q", p, sent, lenient(sent))
	}
}

func TestExemptPathsAreNothingElse(t *testing.T) {
	exact := newRoute(&config.Listener{}, &config.Route{Path: "/healthz", Exempt: true})
	below := newRoute(&config.Listener{}, &config.Route{Path: "/health/", Exempt: true, Prefix: true})
	for _, p := range paths() {
		exempts(t, exact, below, p)
		exempts(t, exact, below, strings.Replace(p, "/healthz", "/health", 1))
	}
	for path, want := range map[string][2]bool{
		"/healthz": {true, false}, "//healthz": {}, "/x/../healthz": {}, "/healthz/.": {}, "/%68ealthz": {true, false},
		"/healthz/": {}, "/healthzebra": {}, "/healthz/..;/export": {}, "/healthz/..%2fexport": {}, "/healthz/..\\export": {}, "/healthz/%252e%252e/export": {}, "/healthz;x": {}, "/healthz%00": {},
		"/health/a": {false, true}, "/health/a/": {false, true}, "/health/..;/export": {}, "/health/a%2f..%2fexport": {}, "/health": {}, "/health/../export": {}, "/health/a;b": {},
	} {
		u, err := url.ParseRequestURI(path)
		if err != nil {
			t.Fatal(err)
		}
		r := &http.Request{Method: http.MethodGet, URL: u, RequestURI: path}
		if got := [2]bool{exact.Miss(r, Path(r), "") == "", below.Miss(r, Path(r), "") == ""}; got != want {
			t.Errorf("%s: exempt exactly and below: %v, want %v", path, got, want)
		}
	}
}
