//go:build thorough

// Package gin protects a server with the framework Gin. Leave the line with the tag out of a copy: it saves the minute that Gin
// takes to compile in `go test work`.
package gin

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/seed90641741/spillway/spillhttp"
)

// New returns a protected server with one route. Middleware of Gin runs when Gin has found the
// route, so the key is the path that was registered.
func New(c spillhttp.HandlerConfig, users http.HandlerFunc) (http.Handler, error) {
	c.HealthPaths = []string{"/healthz"}
	protect, err := spillhttp.Middleware(c)
	if err != nil {
		return nil, err
	}
	gin.SetMode(gin.ReleaseMode)
	e := gin.New()
	e.Use(wrap(protect))
	e.GET("/users/:id", gin.WrapF(users))
	e.GET("/healthz", func(c *gin.Context) { c.Status(http.StatusOK) })
	return e, nil
}

// wrap makes middleware of net/http middleware of Gin.
func wrap(protect func(http.Handler) http.Handler) gin.HandlerFunc {
	type key struct{}
	admitted := protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := r.Context().Value(key{}).(*gin.Context)
		own := &writer{ResponseWriter: c.Writer, through: w}
		c.Request, c.Writer = r, own
		c.Next()
		own.begin()
	}))
	return func(c *gin.Context) {
		w, r := c.Writer, c.Request.WithContext(context.WithValue(c.Request.Context(), key{}, c))
		r.Pattern = c.FullPath()
		defer func() { c.Writer = w }()
		admitted.ServeHTTP(w, r)
		c.Abort() // what was admitted has been served
	}
}

// A writer writes through the writer of net/http middleware, which has to see the status.
type writer struct {
	gin.ResponseWriter

	through http.ResponseWriter
	begun   bool
}

func (w *writer) begin() {
	if !w.begun {
		w.begun = true
		w.through.WriteHeader(w.Status())
	}
}

// Write implements [http.ResponseWriter].
func (w *writer) Write(b []byte) (int, error) {
	w.begin()
	return w.through.Write(b)
}

// WriteString implements [gin.ResponseWriter].
func (w *writer) WriteString(s string) (int, error) { return w.Write([]byte(s)) }

// WriteHeaderNow implements [gin.ResponseWriter].
func (w *writer) WriteHeaderNow() {
	w.begin()
	w.ResponseWriter.WriteHeaderNow()
}

// Flush implements [http.Flusher].
func (w *writer) Flush() {
	w.begin()
	w.ResponseWriter.Flush()
}
