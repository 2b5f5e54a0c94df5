"""Files: read and written, looked at, moved, searched and changed, and carried by addresses of their own."""

import base64
import hashlib
import urllib.error
import urllib.request

from boat_sdk import (
    FileFolderRequest,
    FileMoveRequest,
    FilePermissionsRequest,
    FileReplaceRequest,
    FileUrlRequest,
    FileWriteRequest,
)
from case import fails
from stranger import equal


async def files_are_written_and_read(case):
    api = case.api
    with case.sandbox() as sandbox_id:
        written = case.write(sandbox_id, "deep/er/text.txt", "é\n")
        equal((written.type, written.encoding, written.size), ("file.written", "utf8", 3))
        read = api.read_file(sandbox_id, "/home/user/deep/er/text.txt")
        equal((read.type, read.encoding, read.size, read.content), ("file.read", "utf8", 3, "é\n"))
        every = bytes(range(256))
        content = base64.b64encode(every).decode()
        api.write_file(sandbox_id, FileWriteRequest(path="/tmp/bytes", content=content, encoding="base64"))
        equal(api.read_file(sandbox_id, "/tmp/bytes", encoding="base64").content, content)
        equal(api.artifact(sandbox_id, "/tmp/bytes"), every)
        case.write(sandbox_id, "empty", "")
        equal((api.read_file(sandbox_id, "empty").content, api.artifact(sandbox_id, "empty")), ("", b""))
        await fails(lambda: api.read_file(sandbox_id, "/etc/passwd"), 400, "invalid_path")
        await fails(lambda: api.artifact(sandbox_id, "../../etc/passwd"), 400, "invalid_path")
        case.command(sandbox_id, "ln -s /etc/passwd out")
        await fails(lambda: api.read_file(sandbox_id, "out"), 400, "invalid_path")


async def folders_are_made_and_listed(case):
    api = case.api
    with case.sandbox() as sandbox_id:
        made = api.create_folder(sandbox_id, FileFolderRequest(path="src/deep", mode="750"))
        equal((made.name, made.path, made.is_dir, made.mode), ("deep", "/home/user/src/deep", True, "0750"))
        equal(api.create_folder(sandbox_id, FileFolderRequest(path="src/deep")).path, made.path)
        case.write(sandbox_id, "src/b.txt", "abc")
        case.command(sandbox_id, "ln -s deep src/a-link")
        listed = api.list_files(sandbox_id, path="src")
        equal([entry.name for entry in listed.files], ["a-link", "b.txt", "deep"])
        equal([entry.is_symlink for entry in listed.files], [True, False, False])
        equal([entry.is_dir for entry in listed.files], [False, False, True])
        equal((listed.path, listed.truncated, listed.files[1].size), ("/home/user/src", False, 3))
        assert "src" in [entry.name for entry in api.list_files(sandbox_id).files]
        changed = api.set_file_permissions(sandbox_id, FilePermissionsRequest(path="src/b.txt", mode="755"))
        equal((changed.name, changed.mode), ("b.txt", "0755"))
        info = api.get_file_info(sandbox_id, "src/b.txt")
        equal((info.type, info.path, info.size, info.mode), ("file.info", "/home/user/src/b.txt", 3, "0755"))
        equal(api.get_file_info(sandbox_id, "src/a-link").is_symlink, True)
        await fails(lambda: api.list_files(sandbox_id, path="src/b.txt"), 400, "not_a_folder")
        await fails(lambda: api.get_file_info(sandbox_id, "none"), 404, "path_not_found")
        await fails(lambda: api.list_files(sandbox_id, path="/"), 400, "invalid_path")


async def files_are_moved_and_deleted(case):
    api = case.api
    with case.sandbox() as sandbox_id:
        case.write(sandbox_id, "one", "one")
        case.write(sandbox_id, "two", "two")
        moved = api.move_file(sandbox_id, FileMoveRequest(source="one", destination="/tmp/new/one"))
        equal((moved.path, moved.destination), ("/home/user/one", "/tmp/new/one"))
        taken = FileMoveRequest(source="two", destination="/tmp/new/one")
        await fails(lambda: api.move_file(sandbox_id, taken), 400, "already_exists")
        api.move_file(sandbox_id, FileMoveRequest(source="two", destination="/tmp/new/one", overwrite=True))
        equal(api.read_file(sandbox_id, "/tmp/new/one").content, "two")
        await fails(lambda: api.delete_file(sandbox_id, "/tmp/new"), 400, "folder_not_empty")
        equal(api.delete_file(sandbox_id, "/tmp/new", recursive=True).path, "/tmp/new")
        await fails(lambda: api.read_file(sandbox_id, "/tmp/new/one"), 404, "path_not_found")
        await fails(lambda: api.delete_file(sandbox_id, "/home/user", recursive=True), 400, "folder_not_empty")
        # A link goes, not what it leads to.
        case.command(sandbox_id, "mkdir kept && touch kept/file && ln -s kept link")
        api.delete_file(sandbox_id, "link")
        equal([entry.name for entry in api.list_files(sandbox_id, path="kept").files], ["file"])


async def files_are_searched_and_changed(case):
    api = case.api
    with case.sandbox() as sandbox_id:
        case.write(sandbox_id, "src/a.py", "import os\nprint(os.name)\n")
        case.write(sandbox_id, "src/b.py", "import sys\n")
        case.write(sandbox_id, "src/notes.md", "import nothing")
        found = api.search_files(sandbox_id, "*.py", path="src")
        equal((sorted(found.files), found.truncated), (["/home/user/src/a.py", "/home/user/src/b.py"], False))
        found = api.find_in_files(sandbox_id, "os", path="src")
        equal(
            [(match.file, match.line, match.content) for match in found.matches],
            [("/home/user/src/a.py", 1, "import os"), ("/home/user/src/a.py", 2, "print(os.name)")],
        )
        found = api.find_in_files(sandbox_id, "^import (sys|nothing)$", path="src", regex=True)
        equal(sorted(match.file for match in found.matches), ["/home/user/src/b.py", "/home/user/src/notes.md"])
        await fails(lambda: api.find_in_files(sandbox_id, "(", path="src", regex=True), 400, "invalid_pattern")
        replaced = api.replace_in_files(
            sandbox_id, FileReplaceRequest(paths=["src/a.py", "src/none"], pattern="os", new_value="")
        )
        equal([result.success for result in replaced.results], [True, False])
        equal((replaced.results[0].replacements, bool(replaced.results[1].error)), (2, True))
        equal(api.read_file(sandbox_id, "src/a.py").content, "import \nprint(.name)\n")


async def files_of_any_size_have_addresses(case):
    api = case.api
    with case.sandbox() as sandbox_id:
        up = api.create_upload_url(sandbox_id, FileUrlRequest(path="big/it's é.bin", ttl_seconds=3600))
        equal((up.type, up.method, up.path), ("file.upload_url", "PUT", "/home/user/big/it's é.bin"))
        # More than the other ways take, and without a length known beforehand.
        block = bytes(range(256)) * 4096
        equal(_put(up.url, iter([block] * 24)), 200)
        down = api.create_download_url(sandbox_id, FileUrlRequest(path="big/it's é.bin"))
        equal((down.type, down.method), ("file.download_url", "GET"))
        with urllib.request.urlopen(down.url, timeout=60) as answer:
            equal(_digest(iter(lambda: answer.read(1 << 20), b"")), _digest([block] * 24))
        assert down.expires_at < up.expires_at
        equal(api.get_file_info(sandbox_id, "big/it's é.bin").size, 24 * len(block))
        # Each is good for one thing only.
        equal(_put(down.url, b"x"), 405)
        equal(_put(up.url.replace("big", "bag"), b"x"), 403)


def _digest(blocks):
    digest = hashlib.sha256()
    for block in blocks:
        digest.update(block)
    return digest.hexdigest()


def _put(url, body):
    """The status of an answer to a PUT."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, method="PUT"), timeout=60) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code
