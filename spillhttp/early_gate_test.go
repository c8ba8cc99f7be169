package spillhttp

import (
	"bufio"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/race"
	"github.com/seed90641741/spillway/spillhttp/internal/early"
	"github.com/seed90641741/spillway/spillhttp/internal/early/earlytest"
)

func TestRejectionBytes(t *testing.T) {
	x := new(memo)
	const told = "X-Overload-Reason: overload\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 19\r\n"
	for want, why := range map[string]ingress.Rejection{
		"HTTP/1.1 503 Service Unavailable\r\nX-Envoy-Overloaded: true\r\n" + told + "X-Overload-Scope: task\r\nRetry-After: 2\r\nRetry-After-Ms: 1250\r\n\r\nrejected: overload\n": {
			Outcome: spillway.OutcomeOverloaded, RetryAfter: 1250 * time.Millisecond,
		},
		"HTTP/1.1 503 Service Unavailable\r\nX-Envoy-Overloaded: true\r\n" + told + "X-Overload-Scope: service\r\nX-Should-Retry: false\r\n\r\nrejected: overload\n": {
			Outcome: spillway.OutcomeOverloaded, RetryAfter: time.Second, DontRetry: true,
		},
		"HTTP/1.1 429 Too Many Requests\r\nX-Overload-Scope: customer\r\nX-Envoy-Ratelimited: true\r\n" +
			"X-Overload-Reason: quota\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 16\r\n" +
			"Ratelimit: \"quota\";r=0;t=2\r\nRetry-After: 2\r\nRetry-After-Ms: 1250\r\nX-Request-Accept-Ratio: 0.50\r\n\r\nrejected: quota\n": {
			Outcome: spillway.OutcomeOverQuota, RetryAfter: 1250 * time.Millisecond, AcceptRatio: "0.50",
		},
	} {
		text := wordingOf(ingress.ReasonsCoarse, &why)
		if got := string(x.rejection(&why, text, []byte("GET"))); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		head, _, _ := strings.Cut(want, "rejected:")
		if got := string(x.rejection(&why, text, []byte("HEAD"))); got != head {
			t.Errorf("HEAD: %q, want %q", got, head)
		}
	}
}

// A head says what the request says that net/http makes of it, also if the memo has served others before.
func TestHeadsClaimTheSame(t *testing.T) {
	var got ingress.Claims
	var read bool
	again := make(map[*memo]int)
	rejecter := early.NewRejecter(viewer(func(x *early.Head) {
		if read = !x.Repeats(); read {
			m := memoOf(x)
			again[m]++
			got = *m.claimed(x)
		}
	}), claimHeaders)
	other := []byte(strings.Repeat("x", 4096)) // which ends what is left of a body, and passes through
	compared := 0
	for _, text := range append(earlytest.Corpus(), earlytest.HeadShapes()...) {
		if read = false; !arrivalsAt(rejecter)([]byte(text), other) && !read {
			continue
		}
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
		if err != nil {
			continue // the target is no URL
		}
		var want ingress.Claims
		f := fieldsOf(r, true)
		f.read(&want)
		if readTrace(&want, r.Header); got != want {
			t.Fatalf("%q says %+v, want %+v", text, got, want)
		}
		if compared++; got.Labelled || got.Timeout > 0 || got.Attempt > 0 {
			compared += 1000
		}
	}
	if compared%1000 < 100 || compared < 10_000 || !race.Enabled && len(again) > compared%1000/2 { // with it, pools lose what they hold
		t.Errorf("%d were compared and labelled, by %d memos: the test shows little", compared, len(again))
	}
}

// answersAlike fails if a client can tell by the answers whether requests are rejected
// early. It returns how many were.
func answersAlike(t *testing.T, pieces []string, eager bool) (early int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		config := busy
		config.Rand = func() float64 { return 0.5 }
		atAGlance := mustHandler(t, echo, config, HandlerConfig{HealthPaths: []string{"/healthz"}})
		atAGlance.looks.Store(1 << 40)
		for name, h := range map[string]*Handler{"classified": half(t, echo), "at a glance": atAGlance} {
			got, want, some, all := earlytest.Both(t, pieces, eager, h, h.Serve)
			early += all - some
			if got != want || some > all {
				t.Errorf("%s, %q: net/http saw %d requests, without early rejection %d; answers\n%swant\n%s", name, pieces, some, all, got, want)
			}
			nothingLeft(t, h)
		}
	})
	return early
}

// TestStreamsOfRequests: whatever a client sends, and in whatever pieces, it gets the same
// answers with early rejection and without. Package early has more tests of this kind.
func TestStreamsOfRequests(t *testing.T) {
	rejected := 0
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 18))
		rejected += answersAlike(t, earlytest.Stream(random), random.IntN(3) == 0)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if rejected < 100 {
		t.Errorf("%d were rejected early: the test shows little", rejected)
	}
}

// What code of the user panics with before there is a handler goes on in the Handler, where a middleware can recover.
func TestPanicInTheEarlyGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		h := mustHandler(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), ingress.Config{}, HandlerConfig{
			Classify: func(*http.Request) spillway.Call {
				if asked++; asked == 1 {
					panic("user")
				}
				return spillway.Call{}
			},
		})
		h.looks.Store(lookOn)
		var recovered []any
		s := openWith(t, "HTTP1", h, true, func(s *http.Server) {
			s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer func() { recovered = append(recovered, recover()) }()
				h.ServeHTTP(w, r)
			})
		})
		for range 2 {
			must(s.base.RoundTrip(newRequest(t, t.Context(), http.MethodGet, nil))).Body.Close()
			s.base.CloseIdleConnections() // the next head comes in one piece: net/http has read no byte of it
		}
		s.close()
		if len(recovered) != 2 || recovered[0] != "user" || recovered[1] != nil || asked < 3 {
			t.Errorf("recovered %v, asked %d times", recovered, asked)
		}
	})
}
