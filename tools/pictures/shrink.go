package main

import (
	"cmp"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"slices"
)

// shrink rewrites a picture with the 256 colours that it has most of: a page has few, and many between them at the edges
// of letters.
func shrink(name string) error {
	in, err := os.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	full, err := png.Decode(in)
	if err != nil {
		return err
	}
	size := full.Bounds()
	counts := make(map[color.RGBA]int)
	each(size, func(x, y int) { counts[rgba(full, x, y)]++ })
	often := slices.SortedFunc(maps.Keys(counts), func(a, b color.RGBA) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a.R, b.R), cmp.Compare(a.G, b.G), cmp.Compare(a.B, b.B))
	})
	var palette color.Palette
	for _, c := range often[:min(len(often), 256)] {
		palette = append(palette, c)
	}
	nearest := make(map[color.RGBA]uint8, len(counts))
	for c := range counts {
		nearest[c] = uint8(palette.Index(c))
	}
	small := image.NewPaletted(size, palette)
	each(size, func(x, y int) { small.SetColorIndex(x, y, nearest[rgba(full, x, y)]) })
	out, err := os.Create(name)
	if err != nil {
		return err
	}
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(out, small); err != nil {
		return err
	}
	return out.Close()
}

func each(size image.Rectangle, f func(x, y int)) {
	for y := size.Min.Y; y < size.Max.Y; y++ {
		for x := size.Min.X; x < size.Max.X; x++ {
			f(x, y)
		}
	}
}

// rgba returns a pixel. A page is opaque.
func rgba(m image.Image, x, y int) color.RGBA {
	r, g, b, _ := m.At(x, y).RGBA()
	return color.RGBA{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8), 255}
}
