//go:build thorough

package recipes_test

import (
	"testing"

	"github.com/seed90641741/spillway/examples/recipes/gin"
)

func TestGin(t *testing.T) { recipe{"/users/:id", gin.New}.check(t) }
