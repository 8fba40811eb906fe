package sdks

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/google/go-github/v93/github"
	"github.com/openai/openai-go/v3"
	"github.com/slack-go/slack"
	"github.com/stripe/stripe-go/v85"
	"google.golang.org/api/storage/v1"

	"github.com/weirhttp/weir"
)

const size = 700 << 10

// TestUploads: an upload of 700 KB arrives whole and once, also when its first
// attempt is refused with a 429 after it was read.
func TestUploads(t *testing.T) {
	data := text(size)
	for _, tt := range []struct {
		name   string
		find   func(*http.Request) ([]byte, error)
		answer string
		own    bool // the SDK's retries, for bodies that cannot be had again
		send   func(ctx context.Context, t *testing.T, c *http.Client, own bool) error
	}{
		{"go-github, a release's asset from a file", whole, `{"id":1}`, false, func(ctx context.Context, t *testing.T, c *http.Client, own bool) error {
			f, err := temp(t.TempDir(), size)
			if err != nil {
				return err
			}
			defer f.Close()
			_, _, err = newGitHub(c, own).Repositories.UploadReleaseAsset(ctx, "o", "r", 1, &github.UploadOptions{Name: "a.bin", MediaType: "application/zip"}, f)
			return err
		}},
		{"stripe-go, a file", part("file"), `{"id":"file_1","object":"file"}`, false, func(ctx context.Context, t *testing.T, c *http.Client, own bool) error {
			_, err := newStripe(c, own).V1Files.Create(ctx, &stripe.FileCreateParams{
				FileReader: strings.NewReader(data), Filename: stripe.String("a.pdf"), Purpose: stripe.String("dispute_evidence"),
			})
			return err
		}},
		{"openai-go, a file", part("file"), `{"id":"file-1","object":"file"}`, false, func(ctx context.Context, t *testing.T, c *http.Client, own bool) error {
			ai := newOpenAI(c, own)
			_, err := ai.Files.New(ctx, openai.FileNewParams{File: strings.NewReader(data), Purpose: openai.FilePurposeBatch})
			return err
		}},
		// The SDK wraps its bodies so that only it can rewind them.
		{"aws-sdk-go-v2, an object", whole, ``, true, func(ctx context.Context, t *testing.T, c *http.Client, own bool) error {
			_, err := newS3(c, own).PutObject(ctx, &s3.PutObjectInput{Bucket: aws.String("b"), Key: aws.String("k"), Body: strings.NewReader(data)})
			return err
		}},
		// Or weir keeps them (BufferBody), as it must slack-go's, which are
		// the reading ends of pipes.
		{"aws-sdk-go-v2, an object kept by weir", whole, ``, false, func(ctx context.Context, t *testing.T, c *http.Client, own bool) error {
			_, err := newS3(c, own).PutObject(ctx, &s3.PutObjectInput{Bucket: aws.String("b"), Key: aws.String("k"), Body: strings.NewReader(data)})
			return err
		}},
		{"slack-go, a file", part("file"), `{"ok":true}`, false, func(ctx context.Context, t *testing.T, c *http.Client, own bool) error {
			return newSlack(c, own).UploadToURL(ctx, slack.UploadToURLParameters{
				UploadURL: "http://slack.test/api/up", Reader: strings.NewReader(data), Filename: "a.txt",
			})
		}},
		{"azcore, a blob", whole, ``, false, func(ctx context.Context, t *testing.T, c *http.Client, own bool) error {
			return azureDo(ctx, newAzure(c, own), "PUT", "/container/blob", []byte(data))
		}},
		{"google-api-go-client, an object", related, `{"kind":"storage#object","name":"o"}`, false, func(ctx context.Context, t *testing.T, c *http.Client, _ bool) error {
			svc, err := newGoogle(c)
			if err != nil {
				return err
			}
			_, err = svc.Objects.Insert("b", &storage.Object{Name: "o"}).Media(strings.NewReader(data)).Context(ctx).Do()
			return err
		}},
	} {
		for name, first := range map[string]http.HandlerFunc{
			"accepted at once": nil,
			"refused first": func(w http.ResponseWriter, r *http.Request) {
				if r.Host == "s3.test" {
					refuse(w, 503, `<Error><Code>SlowDown</Code></Error>`)
					return
				}
				w.Header().Set("Retry-After", "1")
				refuse(w, 429, `{"ok":false}`)
			},
		} {
			t.Run(tt.name+", "+name, func(t *testing.T) {
				box := &inbox{first: first, find: tt.find, answer: says(tt.answer)}
				c := weir.Config{}
				if !tt.own {
					c.Retry.BufferBody = 1 << 20
				}
				bubble(t, box, c, func(t *testing.T, c *http.Client) {
					if err := tt.send(t.Context(), t, c, tt.own); err != nil {
						t.Error(err)
					}
				})
				if len(box.got) != 1 || box.got[0] != digest([]byte(data), nil) {
					t.Errorf("arrived: %q", box.got)
				}
			})
		}
	}
}
