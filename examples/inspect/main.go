// Inspect shows the page of package inspect at work: a program that calls seven
// simulated APIs, each with a trouble of its own, and the page that says why
// its calls wait.
//
//	go run ./examples/inspect
//
// It runs until it is interrupted. Nothing leaves this machine.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"runtime"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/inspect"
	"github.com/weirhttp/weir/throttle"
)

func main() {
	listen := flag.String("listen", "localhost:8417", "where the page is served")
	show := flag.Bool("open", true, "open the page in a browser")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *listen, *show); err != nil {
		log.Fatal(err)
	}
}

// config is all that this program says about its APIs. The rest it learns.
func config() weir.Config {
	return weir.Config{Throttle: throttle.Config{
		Budgets: map[string]throttle.Budget{
			"maps.example":             throttle.MustParseBudget("8/s, 50000/d burst 50000"),
			"GET maps.example/geocode": throttle.MustParseBudget("3/s"),
			"files.example":            throttle.MustParseBudget("4 in flight"),
		},
	}}
}

func run(ctx context.Context, listen string, show bool) error {
	apis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	// ErrorLog: one of the APIs breaks off, again and again.
	world := &http.Server{Handler: newWorld(), ErrorLog: log.New(discard{}, "", 0)}
	go world.Serve(apis)
	defer world.Close()

	transport, err := weir.New(everyHostAt(apis.Addr().String()), config())
	if err != nil {
		return err
	}
	defer transport.Close()

	at, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	// These lines are what a program of your own needs.
	page := &http.Server{Handler: inspect.Handler(transport, inspect.Config{Controls: true})}
	go page.Serve(at)
	defer page.Close()

	address := "http://" + at.Addr().String() + "/"
	fmt.Println("the page:", address)
	if show {
		if err := open(address); err != nil {
			fmt.Println("open it in a browser; Ctrl-C ends this")
		}
	}
	traffic(ctx, &http.Client{Transport: transport})
	return nil
}

// everyHostAt is a base that finds every host at one address.
func everyHostAt(address string) http.RoundTripper {
	return &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, address)
		},
		MaxIdleConnsPerHost: 100,
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// open shows an address in the user's browser.
func open(address string) error {
	switch runtime.GOOS {
	case "darwin":
		return exec.Command("open", address).Start()
	case "windows":
		return exec.Command("rundll32", "url.dll,FileProtocolHandler", address).Start()
	case "linux", "freebsd", "openbsd", "netbsd":
		return exec.Command("xdg-open", address).Start()
	}
	return errors.New("no way to open a browser is known here")
}
