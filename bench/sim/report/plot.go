package main

import (
	"fmt"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// series is what one server saw over time.
type series struct {
	Name, Strategy    string
	PerBin            float64 // seconds
	Accepted, Refused []int
	Quota, Own        []float64 // per second; Own 0: no limit
}

const width, height = 20 * vg.Centimeter, 5 * vg.Centimeter // of one panel

// drawAll writes one SVG per name, with a panel for each strategy, into a folder
// that holds nothing else, and returns their files.
func drawAll(dir string, all []series) (files []string, err error) {
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	for len(all) > 0 {
		n := 1
		for n < len(all) && all[n].Name == all[0].Name {
			n++
		}
		file := strings.NewReplacer(" ", "-", ",", "", "/", "-").Replace(all[0].Name + ".svg")
		if err := panels(filepath.Join(dir, file), all[:n]); err != nil {
			return nil, err
		}
		files, all = append(files, file), all[n:]
	}
	return files, nil
}

// panels puts one strategy below the other, on the same axes.
func panels(path string, all []series) error {
	canvas := vgsvg.New(width, height*vg.Length(len(all)))
	tiles := draw.Tiles{Rows: len(all), Cols: 1, PadTop: vg.Points(4), PadBottom: vg.Points(4), PadRight: vg.Points(10), PadLeft: vg.Points(4), PadY: vg.Points(8)}
	grid := make([][]*plot.Plot, len(all))
	top := ceiling(all)
	for i, s := range all {
		p, err := s.panel(top)
		if err != nil {
			return err
		}
		grid[i] = []*plot.Plot{p}
	}
	dc := draw.New(canvas)
	dc.SetColor(color.White) // readable in dark mode too
	dc.Fill(dc.Rectangle.Path())
	for i, row := range plot.Align(grid, tiles, dc) {
		grid[i][0].Draw(row[0])
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = canvas.WriteTo(f)
	return err
}

// ceiling is the top of all panels: the first moment of those who begin with
// everything at once would press the rest flat.
func ceiling(all []series) float64 {
	most, quota := 0., 0.
	for _, s := range all {
		for i := range s.Quota {
			quota = max(quota, s.Quota[i])
			most = max(most, float64(s.Accepted[i])/s.PerBin, float64(s.Refused[i])/s.PerBin)
		}
	}
	return min(most*1.05, 6*quota)
}

func (s series) panel(top float64) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = s.Strategy + ": " + s.Name
	p.X.Label.Text, p.Y.Label.Text = "seconds", "per second"
	p.Title.TextStyle.Font.Size, p.Legend.TextStyle.Font.Size = vg.Points(11), vg.Points(9)
	p.Legend.Top, p.Legend.Left, p.Legend.Padding = true, true, vg.Points(2)
	p.Legend.XOffs = width * 0.74
	lasts := float64(len(s.Quota)) * s.PerBin
	p.X.Tick.Marker = plot.ConstantTicks(sixths(lasts))
	p.Add(plotter.NewGrid())
	per := func(bins []int) []float64 {
		out := make([]float64, len(bins))
		for i, n := range bins {
			out[i] = float64(n) / s.PerBin
		}
		return out
	}
	for _, line := range []struct {
		name   string
		y      []float64
		color  color.Color
		dashes []vg.Length
	}{
		{"quota", s.Quota, color.RGBA{110, 110, 110, 255}, nil},
		{"accepted", per(s.Accepted), color.RGBA{0, 114, 178, 255}, nil},
		{"refused", per(s.Refused), color.RGBA{213, 94, 0, 255}, nil},
		{"own limit", s.Own, color.RGBA{0, 158, 115, 255}, []vg.Length{vg.Points(4), vg.Points(2)}},
	} {
		if line.y == nil {
			continue
		}
		l, err := plotter.NewLine(steps(line.y, s.PerBin))
		if err != nil {
			return nil, err
		}
		l.LineStyle = draw.LineStyle{Color: line.color, Width: vg.Points(1.3), Dashes: line.dashes}
		l.StepStyle = plotter.PostStep
		p.Add(l)
		p.Legend.Add(line.name, l)
	}
	p.X.Min, p.X.Max = 0, lasts*1.25 // room for the legend
	p.Y.Min, p.Y.Max = 0, top
	return p, nil
}

func sixths(lasts float64) (ticks []plot.Tick) {
	for i := range 7 {
		at := lasts * float64(i) / 6
		ticks = append(ticks, plot.Tick{Value: at, Label: fmt.Sprintf("%g", at)})
	}
	return ticks
}

// steps begins where there first is something: a limit of zero is none.
func steps(y []float64, bin float64) plotter.XYs {
	var xy plotter.XYs
	for i, v := range y {
		if v > 0 || len(xy) > 0 {
			xy = append(xy, plotter.XY{X: float64(i) * bin, Y: math.Max(v, 0)})
		}
	}
	if xy == nil {
		xy = plotter.XYs{{}}
	}
	return xy
}
