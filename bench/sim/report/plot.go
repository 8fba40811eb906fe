package main

import (
	"image/color"
	"os"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// series is what one server saw over time.
type series struct {
	Name, Strategy    string
	Accepted, Refused []int
	PerBin            float64 // seconds
}

// draw writes one SVG per series and returns their names.
func draw(dir string, all []series) (names []string, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	for _, s := range all {
		name := strings.NewReplacer(" ", "-", ",", "", "/", "-").Replace(s.Strategy + " " + s.Name + ".svg")
		p := plot.New()
		p.Title.Text = s.Strategy + ": " + s.Name
		p.X.Label.Text = "seconds"
		p.Y.Label.Text = "requests per second"
		p.Legend.Top = true
		for _, line := range []struct {
			name  string
			bins  []int
			color color.Color
		}{
			{"accepted", s.Accepted, color.RGBA{R: 30, G: 100, B: 180, A: 255}},
			{"refused", s.Refused, color.RGBA{R: 200, G: 40, B: 40, A: 255}},
		} {
			xy := make(plotter.XYs, len(line.bins))
			for i, n := range line.bins {
				xy[i] = plotter.XY{X: float64(i) * s.PerBin, Y: float64(n) / s.PerBin}
			}
			l, err := plotter.NewLine(xy)
			if err != nil {
				return nil, err
			}
			l.StepStyle = plotter.PostStep
			l.Color = line.color
			p.Add(l)
			p.Legend.Add(line.name, l)
		}
		if err := p.Save(18*vg.Centimeter, 7*vg.Centimeter, filepath.Join(dir, name)); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, nil
}
