package result

import (
	"fmt"
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// WriteSVG draws p into a file.
func (p Plot) WriteSVG(path string) error {
	pl := plot.New()
	pl.Title.Text, pl.X.Label.Text, pl.Y.Label.Text = p.Title, p.X, p.Y
	pl.Title.Padding = vg.Points(8)
	pl.BackgroundColor = color.White // readable in dark mode too
	pl.Legend.Top = true
	pl.Legend.Padding = vg.Points(2)
	pl.Add(plotter.NewGrid())
	var err error
	if len(p.Names) > 0 {
		err = p.bars(pl)
	} else {
		err = p.lines(pl)
	}
	if err != nil {
		return fmt.Errorf("result: plot %s: %w", p.ID, err)
	}
	pl.Y.Max += (pl.Y.Max - pl.Y.Min) * .1
	return pl.Save(22*vg.Centimeter, 11*vg.Centimeter, path)
}

func (p Plot) bars(pl *plot.Plot) error {
	width := vg.Points(480 / float64(len(p.Names)*(len(p.Series)+1)))
	pl.Y.Min = 0
	for i, s := range p.Series {
		b, err := plotter.NewBarChart(plotter.Values(s.Y), width)
		if err != nil {
			return err
		}
		b.Color, b.LineStyle.Width = hue(i), 0
		b.Offset = width * vg.Length(float64(i)-float64(len(p.Series)-1)/2)
		pl.Add(b)
		pl.Legend.Add(s.Name, b)
	}
	pl.NominalX(p.Names...)
	return nil
}

func (p Plot) lines(pl *plot.Plot) error {
	for i, s := range p.Series {
		points := make(plotter.XYs, len(s.Y))
		for j := range s.Y {
			points[j] = plotter.XY{X: s.X[j], Y: s.Y[j]}
		}
		l, err := plotter.NewLine(points)
		if err != nil {
			return err
		}
		l.LineStyle = draw.LineStyle{Color: hue(i), Width: vg.Points(1.6)}
		if i >= 4 {
			l.LineStyle.Dashes = []vg.Length{vg.Points(4), vg.Points(2)}
		}
		pl.Add(l)
		pl.Legend.Add(s.Name, l)
	}
	return nil
}

// hue is a palette that the colour-blind can tell apart (Okabe and Ito, 2008).
func hue(i int) color.Color {
	return [...]color.RGBA{
		{0, 114, 178, 255}, {213, 94, 0, 255}, {0, 158, 115, 255}, {204, 121, 167, 255},
		{230, 159, 0, 255}, {86, 180, 233, 255}, {60, 60, 60, 255}, {240, 228, 66, 255},
	}[i%8]
}
