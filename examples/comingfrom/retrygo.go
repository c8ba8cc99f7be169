package comingfrom

import (
	"context"
	"fmt"
	"io"
	"net/http"

	avast "github.com/avast/retry-go/v5"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/retry"
	"github.com/seed90641741/spillway/spillhttp"
)

func beforeRetry(ctx context.Context, url string) ([]byte, error) {
	return avast.NewWithData[[]byte](avast.Attempts(3), avast.Context(ctx)).Do(func() ([]byte, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return nil, avast.Unrecoverable(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return nil, err
		}
		defer resp.Body.Close()
		if resp.StatusCode >= 400 {
			return nil, fmt.Errorf("status %d", resp.StatusCode)
		}
		return io.ReadAll(resp.Body)
	})
}

func afterRetry(ctx context.Context, url string) ([]byte, error) {
	read := spillway.Call{Kind: spillway.KindRead}
	return retry.DoValue(ctx, nil, read, func(ctx context.Context, _ *retry.Attempt) ([]byte, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return nil, err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return nil, err
		}
		defer resp.Body.Close()
		if err := spillhttp.CheckResponse(resp); err != nil {
			return nil, err
		}
		return io.ReadAll(resp.Body)
	})
}
