package sdks

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/openai/openai-go/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weirhttp/weir"
)

// pause is longer than StallTimeout, which is not for event streams.
const pause = 90 * time.Second

// slowly answers with parts of a body, one a pause, as long as somebody reads it.
func slowly(kind string, pause time.Duration, parts ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", kind)
		for i, p := range parts {
			if i > 0 {
				select {
				case <-time.After(pause):
				case <-r.Context().Done(): // it was cut
					return
				}
			}
			io.WriteString(w, p)
			w.(http.Flusher).Flush()
		}
	})
}

// arrivals checks that event i came i pauses after the start, to the instant.
type arrivals struct {
	start time.Time
	n     int
}

func (a *arrivals) add(t *testing.T) {
	if got, want := time.Since(a.start), time.Duration(a.n)*pause; got < want || got > want+time.Second {
		t.Errorf("event %d came after %v, not %v", a.n, got, want)
	}
	a.n++
}

// TestEventStreams: each event is there when it was sent, however long that
// takes, while others ask the same host.
func TestEventStreams(t *testing.T) {
	chunk := func(i int) string {
		return fmt.Sprintf("data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"%d \"}}]}\n\n", i)
	}
	t.Run("openai-go", func(t *testing.T) {
		h := slowly("text/event-stream", pause, chunk(0), chunk(1), chunk(2), chunk(3)+"data: [DONE]\n\n")
		bubble(t, h, weir.Config{}, func(t *testing.T, c *http.Client) {
			ai := newOpenAI(c, false)
			a := arrivals{start: time.Now()}
			stream := ai.Chat.Completions.NewStreaming(t.Context(), openai.ChatCompletionNewParams{
				Model: "gpt", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("count")},
			})
			var got strings.Builder
			for stream.Next() {
				a.add(t)
				got.WriteString(stream.Current().Choices[0].Delta.Content)
			}
			if err := stream.Close(); err != nil || stream.Err() != nil || got.String() != "0 1 2 3 " {
				t.Errorf("%q, %v, %v", got.String(), stream.Err(), err)
			}
		})
	})
	t.Run("anthropic-sdk-go", func(t *testing.T) {
		delta := func(i int) string {
			return fmt.Sprintf("event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"%d \"}}\n\n", i)
		}
		h := slowly("text/event-stream", pause, delta(0), delta(1), delta(2), delta(3))
		bubble(t, h, weir.Config{}, func(t *testing.T, c *http.Client) {
			ai := newAnthropic(c, false)
			a := arrivals{start: time.Now()}
			stream := ai.Messages.NewStreaming(t.Context(), anthropic.MessageNewParams{
				Model: "claude", MaxTokens: 10, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("count"))},
			})
			var got strings.Builder
			for stream.Next() {
				a.add(t)
				got.WriteString(stream.Current().Delta.Text)
			}
			if err := stream.Close(); err != nil || stream.Err() != nil || got.String() != "0 1 2 3 " {
				t.Errorf("%q, %v, %v", got.String(), stream.Err(), err)
			}
		})
	})
}

// TestSlowDownloads: an object that comes in drops, each before StallTimeout,
// takes all the time it needs.
func TestSlowDownloads(t *testing.T) {
	var parts []string
	for i := range 20 {
		parts = append(parts, strings.Repeat(fmt.Sprint(i%10), 10000))
	}
	want := strings.Join(parts, "")
	h := slowly("application/octet-stream", 50*time.Second, parts...)
	t.Run("aws-sdk-go-v2", func(t *testing.T) {
		bubble(t, h, weir.Config{}, func(t *testing.T, c *http.Client) {
			out, err := newS3(c, true).GetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String("b"), Key: aws.String("k")})
			if err != nil {
				t.Fatal(err)
			}
			defer out.Body.Close()
			if got, err := io.ReadAll(out.Body); err != nil || !bytes.Equal(got, []byte(want)) {
				t.Errorf("%d bytes, %v", len(got), err)
			}
		})
	})
	t.Run("google-api-go-client", func(t *testing.T) {
		bubble(t, h, weir.Config{}, func(t *testing.T, c *http.Client) {
			svc, err := newGoogle(c)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := svc.Objects.Get("b", "o").Context(t.Context()).Download()
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if got, err := io.ReadAll(resp.Body); err != nil || string(got) != want {
				t.Errorf("%d bytes, %v", len(got), err)
			}
		})
	})
}

// TestWatches: a watch of Kubernetes hears each event when it happens, however long
// nothing does. An API server says of a watch in JSON that it is JSON, and no more.
func TestWatches(t *testing.T) {
	event := func(i int) string {
		return fmt.Sprintf(`{"type":"MODIFIED","object":{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"%d"}}}`+"\n", i)
	}
	h := slowly("application/json", pause, event(0), event(1), event(2))
	bubble(t, h, weir.Config{}, func(t *testing.T, c *http.Client) {
		set, err := newKubernetes(c)
		if err != nil {
			t.Fatal(err)
		}
		a := arrivals{start: time.Now()}
		w, err := set.CoreV1().Namespaces().Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		for e := range w.ResultChan() {
			ns, ok := e.Object.(*corev1.Namespace)
			if !ok || ns.Name != fmt.Sprint(a.n) {
				t.Fatalf("event %d: %v %v", a.n, e.Type, e.Object)
			}
			a.add(t)
		}
		if a.n != 3 {
			t.Errorf("%d events, want 3", a.n)
		}
	})
}
