package sdks

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/retry"
)

// newDocker: WithHost comes first, because it looks for an *http.Transport to set up.
func newDocker(c *http.Client) (*client.Client, error) {
	return client.New(client.WithHost("tcp://docker.test:2375"), client.WithHTTPClient(c), client.WithAPIVersion("1.48"))
}

func docker() sdk {
	return sdk{
		name: "moby client", both: 3, ours: 3, theirs: 1, // the daemon has no quota
		call: func(c *http.Client, _ bool) func(context.Context) error {
			cli, err := newDocker(c)
			return func(ctx context.Context) error {
				if err != nil {
					return err
				}
				list, err := cli.ImageList(ctx, client.ImageListOptions{})
				if err != nil {
					return err
				}
				return is(list.Items[0].ID, "sha256:1", nil)
			}
		},
	}
}

// TestDockerOptionOrder: the other order is an error, which says nothing of order.
func TestDockerOptionOrder(t *testing.T) {
	bubble(t, says(`[{"Id":"sha256:1"}]`), weir.Config{}, func(t *testing.T, c *http.Client) {
		if _, err := client.New(client.WithHTTPClient(c), client.WithHost("tcp://docker.test:2375")); err == nil || !strings.Contains(err.Error(), "cannot apply host to transport") {
			t.Errorf("%v", err)
		}
		if err := docker().call(c, true)(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestDockerStreams: events and followed logs are streams by their type or query.
// A container that is waited for and an image that is pulled are plain JSON, and
// quiet for as long as nothing happens: these need StallTimeout off.
func TestDockerStreams(t *testing.T) {
	patient := weir.Config{Hosts: map[string]weir.Host{"docker.test:2375": {Retry: &retry.Config{StallTimeout: -1}}}}
	for _, tt := range []struct {
		name, kind string
		parts      []string
		c          weir.Config
		cut        bool
		read       func(t *testing.T, cli *client.Client) error
	}{
		{"events", "application/jsonl", []string{`{"Type":"container"}` + "\n", `{"Type":"image"}` + "\n"}, weir.Config{}, false, events},
		{"logs", "application/vnd.docker.raw-stream", []string{"a\n", "b\n"}, weir.Config{}, false, logs},
		{"wait", "application/json", []string{"", `{"StatusCode":0}`}, weir.Config{}, true, wait},
		{"wait, StallTimeout off", "application/json", []string{"", `{"StatusCode":0}`}, patient, false, wait},
		{"pull", "application/json", []string{`{"status":"Pulling"}` + "\n", `{"status":"Done"}` + "\n"}, weir.Config{}, true, pull},
		{"pull, StallTimeout off", "application/json", []string{`{"status":"Pulling"}` + "\n", `{"status":"Done"}` + "\n"}, patient, false, pull},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, slowly(tt.kind, pause, tt.parts...), tt.c, func(t *testing.T, c *http.Client) {
				cli, err := newDocker(c)
				if err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				if err := tt.read(t, cli); (err != nil) != tt.cut {
					t.Errorf("cut: %v, want %v", err, tt.cut)
				} else if took := time.Since(start); !tt.cut && took < pause {
					t.Errorf("ended after %v", took)
				}
			})
		})
	}
}

func events(t *testing.T, cli *client.Client) error {
	stream := cli.Events(t.Context(), client.EventsListOptions{})
	for n := 0; ; n++ {
		select {
		case <-stream.Messages:
		case err := <-stream.Err:
			if err != io.EOF || n != 2 {
				return err
			}
			return nil
		}
	}
}

func logs(t *testing.T, cli *client.Client) error {
	r, err := cli.ContainerLogs(t.Context(), "c", client.ContainerLogsOptions{ShowStdout: true, Follow: true})
	if err != nil {
		return err
	}
	defer r.Close()
	got, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	return is(string(got), "a\nb\n", nil)
}

func wait(t *testing.T, cli *client.Client) error {
	w := cli.ContainerWait(t.Context(), "c", client.ContainerWaitOptions{})
	select {
	case <-w.Result:
		return nil
	case err := <-w.Error:
		return err
	}
}

func pull(t *testing.T, cli *client.Client) error {
	p, err := cli.ImagePull(t.Context(), "alpine", client.ImagePullOptions{})
	if err != nil {
		return err
	}
	return p.Wait(t.Context())
}
