package result

import (
	"fmt"
	"image/color"
	"strings"

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
	pl.BackgroundColor = color.White           // readable in dark mode too
	pl.Legend.Top, pl.Legend.Left = true, true // from its left end: readers' fonts may be wider
	pl.Legend.Padding, pl.Legend.TextStyle.Font.Size = vg.Points(2), vg.Points(9)
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
	pl.X.Max += (pl.X.Max - pl.X.Min) * .45 // room for the legend
	pl.Legend.XOffs = 14.3 * vg.Centimeter
	return pl.Save(22*vg.Centimeter, 11*vg.Centimeter, path)
}

func (p Plot) bars(pl *plot.Plot) error {
	width := vg.Points(360 / float64(len(p.Names)*(len(p.Series)+1)))
	pl.Y.Min = 0
	for i, s := range p.Series {
		b, err := plotter.NewBarChart(plotter.Values(s.Y), width)
		if err != nil {
			return err
		}
		b.Color, b.LineStyle.Width = hue(s.Name), 0
		b.Offset = width * vg.Length(float64(i)-float64(len(p.Series)-1)/2)
		pl.Add(b)
		pl.Legend.Add(s.Name, b)
	}
	pl.NominalX(p.Names...)
	pl.X.Tick.Label.Font.Size = vg.Points(8)
	pl.X.Min, pl.X.Max = -.5, float64(len(p.Names))-.5
	return nil
}

func (p Plot) lines(pl *plot.Plot) error {
	for _, s := range p.Series {
		points := make(plotter.XYs, len(s.Y))
		for j := range s.Y {
			points[j] = plotter.XY{X: s.X[j], Y: s.Y[j]}
		}
		l, err := plotter.NewLine(points)
		if err != nil {
			return err
		}
		l.LineStyle = draw.LineStyle{Color: hue(s.Name), Width: vg.Points(1.6)}
		if strings.HasPrefix(s.Name, "weir") {
			l.LineStyle.Width = vg.Points(3)
		}
		pl.Add(l)
		pl.Legend.Add(s.Name, l)
	}
	return nil
}

// hue gives each rival the same colour in every plot. The palette can be told
// apart by the colour-blind (Okabe and Ito, 2008).
func hue(name string) color.Color {
	for i, begin := range [...]string{"weir, patient", "weir", "hand-made", "go-retryablehttp", "failsafe-go", "heimdall", "resty"} {
		if strings.HasPrefix(name, begin) {
			return [...]color.RGBA{{86, 180, 233, 255}, {0, 114, 178, 255}, {213, 94, 0, 255}, {204, 121, 167, 255}, {0, 158, 115, 255}, {230, 159, 0, 255}, {150, 120, 60, 255}}[i]
		}
	}
	return color.RGBA{60, 60, 60, 255}
}
