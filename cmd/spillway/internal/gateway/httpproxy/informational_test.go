package httpproxy

import (
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

// interim are two informational answers with everything that only a final one may have, and the final one.
const interim = "HTTP/1.1 102 Processing\r\nConnection: keep-alive\r\nKeep-Alive: timeout=5\r\n\r\n" +
	"HTTP/1.1 103 Early Hints\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\nLink: </a.css>; rel=preload\r\nEndpoint-Load-Metrics: cpu_utilization=0.5\r\n" +
	"Transfer-Encoding: chunked\r\nUpgrade: h2c\r\nX-Request-Cost: 3\r\nContent-Type: text/html\r\nSet-Cookie: a=b\r\n\r\n" +
	"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nLink: </b.css>\r\n\r\nhello"

// TestInformationalAnswers: a client of HTTP/1.1 or HTTP/2 gets informational answers with Link alone, and then the final one.
func TestInformationalAnswers(t *testing.T) {
	quiet(t)
	for _, second := range []bool{false, true} {
		p := start(t, config.ForUpstream("127.0.0.1:0", saying(t, interim)))
		var seen []int
		trace := &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
			seen = append(seen, code)
			want := map[int]int{http.StatusEarlyHints: 1}[code]
			if len(h) != want || len(h["Link"]) != want {
				t.Errorf("HTTP/2: %v: %d with %v", second, code, h)
			}
			return nil
		}}
		r, err := http.NewRequestWithContext(httptrace.WithClientTrace(context.Background(), trace), http.MethodGet, "http://"+p.Addr("").String(), nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client(t, second).Do(r)
		if err != nil {
			t.Fatalf("HTTP/2: %v: %v", second, err)
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK || string(body) != "hello" || resp.Header.Get("Link") != "</b.css>" || !slices.Equal(seen, []int{102, 103}) {
			t.Errorf("HTTP/2: %v: %d %q %v after %v", second, resp.StatusCode, body, resp.Header, seen)
		}
	}
}

// TestInformationalAnswersNeedHTTP11: RFC 9110, section 15.2.
func TestInformationalAnswersNeedHTTP11(t *testing.T) {
	quiet(t)
	p := start(t, config.ForUpstream("127.0.0.1:0", saying(t, interim)))
	if answer := exchange(t, p.Addr("").String(), "GET / HTTP/1.0\r\nHost: a\r\n\r\n"); strings.Count(answer, "HTTP/1.") != 1 || !strings.HasSuffix(answer, "hello") {
		t.Errorf("a client of HTTP/1.0 gets %q", answer)
	}
}

// nodeGet is a program that gets a URL by HTTP/1.1 or HTTP/2.
const nodeGet = `const [protocol, url] = process.argv.slice(1);
const fail = e => { console.log('failed: ' + e); process.exit(1); };
let text = '';
if (protocol === '2') {
  const session = require('http2').connect(url);
  session.on('error', fail);
  const stream = session.request({':path': '/'});
  stream.on('headers', h => console.log('interim ' + h[':status'] + ' ' + Object.keys(h).join(' ')));
  stream.on('error', fail);
  stream.on('data', d => text += d);
  stream.on('end', () => { console.log(text); session.close(); });
} else {
  const request = require('http').get(url, {agent: false}, r => { r.on('data', d => text += d); r.on('end', () => console.log(text)); });
  request.on('information', r => console.log('interim ' + r.statusCode + ' ' + ':status ' + Object.keys(r.headers).join(' ')));
  request.on('error', fail);
}`

// TestInformationalAnswersForOthers is the same with clients that others have written, where they are installed.
func TestInformationalAnswersForOthers(t *testing.T) {
	quiet(t)
	for _, row := range []struct {
		name string
		args []string
	}{
		{"curl", []string{"-sS", "--http1.1", "-i"}},
		{"curl", []string{"-sS", "--http2-prior-knowledge", "-i"}},
		{"node", []string{"-e", nodeGet, "1"}},
		{"node", []string{"-e", nodeGet, "2"}},
	} {
		program, err := exec.LookPath(row.name)
		if err != nil {
			t.Logf("%s is not installed", row.name)
			continue
		}
		p := start(t, config.ForUpstream("127.0.0.1:0", saying(t, interim)))
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		out, err := exec.CommandContext(ctx, program, append(row.args, "http://"+p.Addr("").String()+"/")...).CombinedOutput()
		cancel()
		text := strings.ToLower(string(out))
		ok := err == nil && strings.HasSuffix(strings.TrimSpace(text), "hello") && strings.Contains(text, "103")
		if !ok || strings.Contains(text, "keep-alive") || strings.Contains(text, "x-hop") || strings.Contains(text, "endpoint-load") || strings.Contains(text, "set-cookie") {
			t.Errorf("%s %s: %v:\n%s", row.name, row.args[len(row.args)-1], err, out)
		}
	}
}
